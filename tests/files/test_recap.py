"""What is in a workspace, in bounds."""

from __future__ import annotations

from agex.files import MemorySpace, VirtualFiles
from agex.files.recap import recap


def files(**contents: str) -> VirtualFiles:
    tree = VirtualFiles(MemorySpace())
    for path, content in contents.items():
        tree.write(
            "/" + path.replace("__", "/").replace("_py", ".py").replace("_txt", ".txt"), content.encode()
        )
    return tree


def test_it_lists_modules_with_signatures_and_first_doc_lines():
    source = (
        '"""Text tools.\n\nMore."""\n'
        'def up(s: str, *, n: int = 1) -> str:\n    """Upper.\n\n    More."""'
        "\n"
        "async def later(): ...\nclass A:\n    '''A class.'''\n    def m(self): ...\n"
        "    def _own(self): ...\n"
        "def _hidden(): ...\n"
    )
    assert recap(files(helpers__text_py=source, notes_txt="12"), 2_000) == (
        "Your modules:\n"
        "helpers.text  (helpers/text.py): Text tools.\n"
        "    def up(s: str, *, n: int=1) -> str: Upper.\n"
        "    async def later()\n"
        "    class A: A class.\n"
        "        def m(self)\n"
        "Files:\n"
        "notes.txt (2 bytes)"
    )


def test_a_package_is_named_after_its_directory():
    tree = files()
    tree.write("/pkg/__init__.py", b"'''A package.'''")
    assert "pkg  (pkg/__init__.py): A package." in recap(tree, 2_000)


def test_a_module_that_is_no_python_is_listed_as_such():
    assert "bad  (bad.py; it has a syntax error)" in recap(files(bad_py="def"), 2_000)


def test_an_empty_workspace_has_none():
    assert recap(files(), 2_000) == ""


def test_it_is_bounded_and_says_how_much_there_is():
    tree = VirtualFiles(MemorySpace())
    for number in range(500):
        tree.write(f"/m{number}.py", b"def f(): ...\n" * 3)
        tree.write(f"/f{number}.txt", b"x")
    text = recap(tree, 1_000)
    assert len(text) < 1_200
    assert "of 500 modules" in text
    assert "of 500 files and directories" in text


def test_what_does_not_fit_is_not_looked_at():
    class Counting(VirtualFiles):
        asked = 0

        def stat(self, path):
            Counting.asked += 1
            return super().stat(path)

    tree = Counting(MemorySpace())
    for number in range(2_000):
        tree.write(f"/f{number}.txt", b"x")
    Counting.asked = 0
    recap(tree, 500)
    assert Counting.asked < 100


def test_skills_are_no_files_of_the_agent():
    tree = files()
    tree.write("/skills/one/SKILL.md", b"x")
    assert "SKILL" not in recap(tree, 2_000)
