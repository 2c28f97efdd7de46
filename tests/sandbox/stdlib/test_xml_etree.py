"""``xml.etree`` for guests: everyday programs as in Python, over nothing of the host's and nothing that calls a guest.

Stopped by: sandbox.stdlib.sources.xml_etree.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from agex.errors import SandboxError
from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox

HEAD = """import io
import xml.etree.ElementTree as ET
text = '''<?xml version="1.0"?>
<shop xmlns:s="http://shop">
  <item id="1" s:kind="book"><name>A &amp; B</name><price>5.5</price></item>
  <item id="2"><name>C</name><price>7</price></item><!-- no --><?go on?>
</shop>'''
root = ET.fromstring(text)
"""
AS_IN_PYTHON = {
    "what is read": "print(root.tag, root.attrib, len(root), [(i.get('id'), i.findtext('name'), float(i.find('price').text)) for i in root.iter('item')], root[0].get('{http://shop}kind'), root.find('none'), root.findtext('none', 'x'))",
    "by paths": "for p in ('.//price', 'item[@id=\"2\"]/name', 'item/name', './item[1]', 'item[name=\"C\"]', '*', 'item[last()]', './/price/..', './/*[@id]', './/{*}price'): print(p, [(e.tag, e.text) for e in root.findall(p)])\nprint(root.findall('s:x', {'s': 'http://shop'}))\ntry: root.findall('/item')\nexcept SyntaxError as e: print(e)",
    "what is made": "r = ET.Element('r', {'a': '1'}, b='<\"&')\nET.SubElement(r, 'x').text = 'a < b'\ny = ET.SubElement(r, 'y', k='v')\ny.tail = 'tail'\nr.append(ET.Comment('c'))\nr.insert(0, ET.ProcessingInstruction('p', 'q'))\nprint(ET.tostring(r), ET.tostring(r, encoding='unicode', short_empty_elements=False), ET.tostring(r, 'utf-8', xml_declaration=True), ET.tostring(r, 'unicode', method='text'), ET.tostring(r, 'unicode', method='html'))",
    "what is changed": "item = root[0]\nitem.set('id', '9')\nitem.attrib['n'] = 'x'\nroot.remove(root[1])\nroot.extend([ET.Element('z')])\nroot[0:1] = [ET.Element('w')]\ndel root[0]\nprint([e.tag for e in root], item.keys(), list(item.items()))\nitem.clear()\nprint(len(item), item.text, item.attrib)\ntry: root.remove(item)\nexcept ValueError as e: print('no')\nfor bad in (5, 'x', None):\n  try: root.append(bad)\n  except TypeError as e: print('no')",
    "laid out": "ET.indent(root)\nprint(ET.tostring(root, encoding='unicode'))\nET.indent(root, space='\\t', level=1)\nprint(ET.tostring(root, encoding='unicode'))\nET.dump(ET.XML('<a><b/></a>'))",
    "a tree": "t = ET.ElementTree(root)\nout = io.BytesIO()\nt.write(out, encoding='utf-8', xml_declaration=True)\nprint(out.getvalue(), t.getroot() is root, [e.tag for e in t.iter()], t.find('item').tag)\nout = io.StringIO()\nt.write(out, encoding='unicode')\nprint(out.getvalue())\nfor e in ('ascii', 'latin-1', 'utf-16', 'utf-8'):\n  out = io.BytesIO()\n  ET.ElementTree(ET.XML('<a>\\xe9\\u20ac</a>')).write(out, encoding=e)\n  print(out.getvalue())",
    "step by step": "for e, x in ET.iterparse(io.StringIO(text), events=('start', 'end', 'start-ns', 'end-ns', 'comment', 'pi')): print(e, getattr(x, 'tag', x) if e not in ('comment', 'pi') else x.text)\nit = ET.iterparse(io.BytesIO(text.encode()))\nprint(it.root, [x.tag for _, x in it], it.root.tag)\np = ET.XMLPullParser(['end'])\np.feed('<a><b>1</b>')\nprint([(e, x.tag) for e, x in p.read_events()])\np.feed('</a>')\nprint([(e, x.tag) for e, x in p.read_events()], p.close())",
    "what is no xml": "for t in ('', '<a>', '<a></b>', '<a/><b/>', '<a b=c/>', '<a>&x;</a>', 'x', '<a b=\"1\" b=\"2\"/>', '<x:a/>'):\n  try: ET.fromstring(t)\n  except ET.ParseError as e: print(e, e.code, e.position)\nfor t in (5, None, [1]):\n  try: ET.fromstring(t)\n  except TypeError as e: print('no')",
    "namespaces": "ET.register_namespace('shop', 'http://shop')\nprint(ET.tostring(root, encoding='unicode'))\nprint(ET.tostring(ET.XML('<a xmlns=\"http://d\"><b/></a>'), 'unicode', default_namespace='http://d'), ET.QName('http://d', 'x').text, ET.tostring(ET.Element(ET.QName('http://d', 'x'))))\ntry: ET.register_namespace('ns1', 'u')\nexcept ValueError as e: print(e)",
    "a target": "class T:\n  def __init__(self): self.seen = []\n  def start(self, tag, attrs): self.seen.append(('s', tag, attrs))\n  def end(self, tag): self.seen.append(('e', tag))\n  def data(self, data): self.seen.append(data)\n  def comment(self, text): self.seen.append(('c', text))\n  def pi(self, target, data): self.seen.append(('p', target, data))\n  def start_ns(self, p, u): self.seen.append((p, u))\n  def doctype(self, *a): self.seen.append(a)\n  def close(self): return self.seen\nprint(ET.XML(text, ET.XMLParser(target=T())))\nprint(ET.XML('<!DOCTYPE a PUBLIC \"p\" \"s\"><a/>', ET.XMLParser(target=T())), ET.XML('<!DOCTYPE a SYSTEM \"s\"><a/>', ET.XMLParser(target=T())))\nprint(len(ET.XML(text, ET.XMLParser(target=ET.TreeBuilder(insert_comments=True, insert_pis=True)))))",
    "entities": "print(ET.XML('<!DOCTYPE a [<!ENTITY e \"in\">]><a>&e;&lt;&#65;</a>').text)\np = ET.XMLParser()\np.entity['nb'] = '!'\np.feed('<!DOCTYPE a SYSTEM \"x\"><a>&nb;</a>')\nprint(p.close().text)\np = ET.XMLParser()\ntry: p.feed('<!DOCTYPE a SYSTEM \"x\"><a>&nb;</a>')\nexcept ET.ParseError as e: print(e, e.code, e.position)\nprint(ET.XML('<!DOCTYPE a SYSTEM \"x\"><a>z</a>').text)",
    "bytes": "print(ET.fromstring('<?xml version=\"1.0\" encoding=\"latin-1\"?><a>\\xe9</a>'.encode('latin-1')).text, ET.fromstring(bytearray(b'<a>b</a>')).text, ET.fromstringlist(['<a>', 'x', '</a>']).text, ET.XMLID('<a id=\"q\"/>')[1].keys())",
    "texts": "print(''.join(root.itertext()).split(), ET.tostringlist(ET.XML('<a/>')), ET.iselement(root), ET.iselement(5), root.copy if False else '')",
    "canonical": "print(ET.canonicalize('<b  z=\"1\" a=\"2\"><c/> x </b>'), ET.canonicalize(text, strip_text=True))",
    "copies": "import copy\nc = copy.deepcopy(root)\nc[0].set('id', 'z')\nprint(root[0].get('id'), c[0].get('id'), copy.copy(root)[0] is root[0])",
    "to a table": "rows = [{'id': int(i.attrib['id']), **{c.tag: c.text for c in i}} for i in root.findall('item')]\nprint(rows)",
    "an element of one's own": "class E(ET.Element):\n  def words(self): return (self.text or '').split()\nb = ET.TreeBuilder(element_factory=E)\nprint(ET.XML('<a>x y</a>', ET.XMLParser(target=b)).words(), isinstance(E('q'), ET.Element))",
    "in other words": "from xml.etree import ElementTree\nfrom xml.etree.ElementTree import Element, SubElement, tostring\nimport xml.etree.ElementTree\nprint(xml.etree.ElementTree is ElementTree is ET, tostring(Element('a')))",
}  # fmt: skip


def without_addresses(text):
    return re.sub(r" at 0x[0-9a-f]+", "", text)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("source", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_markup_is_read_and_written_as_in_python(source, strict, native):
    before = dict(ET._namespace_map)
    real = native(HEAD + source)
    ET._namespace_map.clear()
    ET._namespace_map.update(before)

    result = Sandbox(Policy.default(strict=strict)).exec(HEAD + source)

    assert result.error is None, result.traceback
    assert without_addresses(result.stdout) == without_addresses(real)


def test_files_are_those_of_the_workspace(tmp_path):
    host = tmp_path / "host.xml"
    host.write_text("<secret/>")
    source = (
        "import xml.etree.ElementTree as ET\n"
        "ET.ElementTree(ET.XML('<a><b/></a>')).write('out.xml')\n"
        "print(ET.parse('out.xml').getroot()[0].tag, [e.tag for _, e in ET.iterparse('out.xml')])\n"
        f"ET.parse({str(host)!r})"
    )

    result = Sandbox(fs=connect_fs()).exec(source)

    assert result.stdout == "b ['b', 'a']\n"
    assert isinstance(result.error, FileNotFoundError)


BOMB = (
    "import xml.etree.ElementTree as ET\n"
    "said = '<!ENTITY a0 \"' + 'lol' * 100 + '\">'\n"
    'for i in range(1, 12): said += f\'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">\'\n'
    "ET.fromstring(f'<!DOCTYPE x [{said}]><x>&a11;</x>')"
)
REFUSED = {
    "an entity of entities": BOMB,
    "a file of the host": "import xml.etree.ElementTree as ET\nET.parse('/etc/passwd')",
    "step by step": "import xml.etree.ElementTree as ET\nlist(ET.iterparse('/etc/passwd'))",
    "a file of the host is written": "import xml.etree.ElementTree as ET\nET.ElementTree(ET.Element('a')).write('/tmp/guest.xml')",
    "an entity that is a file": "import xml.etree.ElementTree as ET\nET.fromstring('<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><x>&e;</x>')",
    "the parser": "import pyexpat",
    "its package": "import xml.parsers.expat",
    "what is written in C": "import _elementtree",
    "of the document": "import xml.dom.minidom",
    "by events": "import xml.sax",
    "parts of others": "import xml.etree.ElementInclude",
    "its globals": "import xml.etree.ElementTree as ET\nET.tostring.__globals__",
    "modules behind it": "import xml.etree.ElementTree as ET\nET.sys.meta_path",
    "a handler": "import xml.etree.ElementTree as ET\nET.XMLParser().parser.StartElementHandler = print",
    "what feeds it": "import xml.etree.ElementTree as ET\nET.expat_feed(None, ()).__closure__",
    "a helper in its place": "import xml.etree.ElementTree as ET\nET.expat_feed = print",
}  # fmt: skip


@pytest.mark.parametrize("attack", REFUSED.values(), ids=REFUSED)
def test_what_leads_further_is_not_there(attack):
    result = Sandbox(limits=Limits(seconds=20)).exec(attack)

    assert isinstance(result.error, (SandboxError, SyntaxError, NameError, AttributeError)), result.stdout


def test_each_session_has_its_own_and_the_host_another():
    before = dict(ET._namespace_map)
    source = (
        "import xml.etree.ElementTree as ET\nfrom xml.etree import ElementPath\n"
        "ET.register_namespace('evil', 'http://x')\nET.Element.tag = ET.Element.find = ET.tostring.x = None\n"
        "ET.Element('a').findall('b[@c]')\n"
    )
    look = "import xml.etree.ElementTree as ET\nprint(ET.tostring(ET.Element('{http://x}a')), ET.XML('<a/>').tag)"

    assert Sandbox().exec(source).error is None
    assert Sandbox().exec(look).stdout == "b'<ns0:a xmlns:ns0=\"http://x\" />' a\n"
    assert before == ET._namespace_map
    assert ET.XML("<a><b/></a>").find("b").tag == "b"


HELD = """
import xml.etree.ElementTree as ET
class Mean(str):
    def __hash__(self): return str.__hash__(self)
    def __eq__(self, other):
        for each in list(root): root.remove(each)
        root.clear()
        root.attrib.clear()
        return str.__eq__(self, other)
class Meaner(ET.Element):
    def __eq__(self, other):
        root.clear()
        return False
    __hash__ = None
root = ET.Element('r')
for i in range(50):
    root.append(Meaner(Mean('x')))
"""
MEAN = {
    "found": "root.find('y')",
    "found by text": "root.findtext('y')",
    "all found": "root.findall('y')",
    "removed": "root.remove(ET.Element('x'))",
    "gone through": "list(root.iter('y'))",
    "written": "ET.tostring(root)",
    "laid out": "ET.indent(root)",
    "copied": "import copy\ncopy.deepcopy(root)",
    "taken in": "class S(list):\n  def __iter__(self):\n    root.clear()\n    return list.__iter__(self)\nroot.extend(S([ET.Element('z')] * 9))\nroot[2:30] = S([ET.Element('z')] * 9)",
    "fed while it tells": "class T:\n  def start(self, *a): p.feed('<b>')\n  def data(self, d): p.close()\np = ET.XMLParser(target=T())\np.feed('<a>x')",
    "fed with what is fed": "f = ET.expat_feed(None, {'start'})\nclass B(bytes):\n  def __buffer__(self, flags): f(b'</a>', True)\nprint(f(B(b'<a>'), False))",
    "told a lie": "class L:\n  def __contains__(self, x):\n    return True\nET.expat_feed('utf-8', L())(b'<a/>', True)",
    "a code of one's own": "class S(str):\n  def __str__(self): return 5\nET.XMLParser(encoding=S('utf-8')).feed('<a/>')",
}  # fmt: skip


@pytest.mark.parametrize("attack", MEAN.values(), ids=MEAN)
def test_what_takes_away_what_is_worked_on_ends_in_an_error_or_in_nothing(attack):
    Sandbox(limits=Limits(seconds=10)).exec(HELD + attack)

    assert Sandbox().exec("x = 1").namespace["x"] == 1


def test_a_host_can_register_its_own():
    policy = Policy.default()
    policy.module(ET)

    made = Sandbox(policy).exec("import xml.etree.ElementTree as ET\nx = ET.XML('<a/>')").namespace["x"]

    assert isinstance(made, ET.Element)
