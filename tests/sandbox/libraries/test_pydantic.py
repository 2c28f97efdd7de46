"""What guest code may do with models of pydantic, whose compiled code reads attributes and fields by name.

Stopped by: sandbox.libraries.pydantic.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from agex.errors import SandboxError, StateCorrupt
from agex.sandbox import Limits, Policy, Sandbox

SECRET = "S3CRET"


class Vault:
    def __init__(self) -> None:
        self._secret = SECRET
        self.label = "vault"

    def size(self) -> str:
        return SECRET


@dataclasses.dataclass(frozen=True)
class Record:
    a: int = 1
    _b: str = SECRET


class Item(pydantic.BaseModel):
    a: int = 1
    tags: list[str] = pydantic.Field(default_factory=list, json_schema_extra={"known": 1})
    _bare: Any = pydantic.PrivateAttr(SECRET)

    def describe(self) -> str:
        return "the host's"


class Frozen(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="allow")
    a: int = 1
    _made: int = 0

    def model_post_init(self, context: Any) -> None:
        self._made += 1


class Row(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)
    label: str


T = typing.TypeVar("T")


class Page(pydantic.BaseModel, typing.Generic[T]):
    item: T


class Holder(pydantic.BaseModel):
    what: Any = None


def _run(source: str) -> Any:
    policy = Policy.default()
    policy.cls(Vault, exclude=["_*", "size"])
    for class_ in (Record, Item, Frozen, Row, Page, Holder):
        policy.cls(class_)
    names = {"vault": Vault(), "record": Record(), "item": Item(), "frozen": Frozen()}
    found = Sandbox(policy, limits=Limits(seconds=5)).exec(source, names)
    assert names["frozen"]._made == 1  # type: ignore[attr-defined]
    return found


_ANY = "import typing\n"
_PRIVATE = "alias_generator=lambda n: '_' + n"
_KEY = "class K(str):\n  def __hash__(self): return 5\n  def __eq__(self, o): return str.__eq__(self, o)\n"

# What compiled code is to do, as a guest would say it.
_SCHEMA = (
    "import typing\ndef schema(*args): return {'type': 'model-fields', 'from_attributes': True, 'fields': {'x': {"
    "'type': 'model-field', 'schema': {'type': 'any'}, 'validation_alias': '_secret'}}}\n"
)
SCHEMAS = {
    "of a class, by its metaclass": "class M(type):\n  def __getattr__(cls, name): return schema\nclass K(metaclass=M): pass\nkind = K",
    "of an object that holds it": "class K: pass\nk = K()\nvars(k)['__get_pydantic_core_schema__'] = schema\nkind = typing.Annotated[typing.Any, k]",
    "of an object that answers": "class K:\n  def __getattr__(self, name): return schema\nkind = typing.Annotated[typing.Any, K()]",
    "of an object that answers all": "class K:\n  def __getattribute__(self, name): return schema\nkind = typing.Annotated[typing.Any, K()]",
    "of a namespace": "import types\nk = types.SimpleNamespace(**{'__get_pydantic_core_schema__': schema})\nkind = typing.Annotated[typing.Any, k]",
    "of a class": "class K: __get_pydantic_core_schema__ = schema\nkind = K",
    "of a class made by hand": "kind = type('K', (), {'__get_pydantic_core_schema__': schema})",
    "of a member": "import enum\nclass E(enum.Enum): A = 1\nvars(E.A)['__get_pydantic_core_schema__'] = schema\nkind = typing.Annotated[typing.Any, E.A]",
}


@pytest.mark.parametrize("source", SCHEMAS.values(), ids=SCHEMAS)
def test_no_object_of_the_guest_says_what_compiled_code_reads(source: str) -> None:
    result = _run(f"{_SCHEMA}{source}\nclass S(Holder):\n  v: kind\nfound = repr(S(v=vault).v)")

    assert SECRET not in str(result.namespace.get("found"))


_GENERATOR = (
    "class G:\n  def __init__(self, **options): pass\n  def generate(self, schema, mode): return schema\n"
)
_READ = "read = {'type': 'model-fields', 'from_attributes': True, 'fields': {'_secret': {'type': 'model-field', 'schema': {'type': 'any'}}}}\n"
REFUSED = {
    "a dict for an annotation": f"{_READ}class S(Holder):\n  v: read\nS(v=vault)",
    "a dict by its name": f"{_READ}class S(Holder):\n  v: 'read'\nS(v=vault)",
    "a dict in an annotation": f"{_READ}class S(Holder):\n  v: list[read]\nS(v=[vault])",
    "a dict for a parameter of a type": f"{_READ}Page[read](item=vault)",
    "a dict in a dataclass": f"import dataclasses\n{_READ}@dataclasses.dataclass\nclass D:\n  v: read\nclass S(Holder):\n  d: D\nS(d=D(vault))",
    "a generator of schemas": f"{_GENERATOR}Item.model_json_schema(schema_generator=G)",
    "a generator of schemas, without its name": f"{_GENERATOR}Item.model_json_schema(True, '', G)",
    "a generator of schemas of its own model": f"{_GENERATOR}class S(Holder):\n  i: Item\n  @classmethod\n  def f(cls): super().model_json_schema(schema_generator=G)\nS.f()",
    "a private name by the alias of a field": f"{_ANY}class S(Item, from_attributes=True, {_PRIVATE}):\n  secret: typing.Any\nS.model_validate(vault)",
    "an excluded name by a field": f"{_ANY}class S(Holder):\n  size: typing.Any\n  model_config = {{'from_attributes': True}}\nS.model_validate(vault)",
    "by the older class of settings": f"{_ANY}class S(Holder):\n  size: typing.Any\n  class Config: from_attributes = True\nS.model_validate(vault)",
    "as the base has it": f"{_ANY}class S(Row):\n  size: typing.Any\nS.model_validate(vault)",
    "by a settings of its own class": f"{_ANY}class D(dict): pass\nclass S(Holder):\n  size: typing.Any\n  model_config = D(from_attributes=True)\nS.model_validate(vault)",
    "by a call of the metaclass": "type(Holder)('S', (Holder,), {'__annotations__': {'size': object}}, from_attributes=True)",
    "for one call": f"{_ANY}class S(Holder, {_PRIVATE}):\n  secret: typing.Any\nS.model_validate(vault, from_attributes=True)",
    "for one call, by a text of its own": f"{_KEY}{_ANY}class S(Holder, {_PRIVATE}):\n  secret: typing.Any\nS.model_validate(vault, **{{K('from_attributes'): True}})",
    "for one call, in a page": f"{_ANY}class S(Holder, {_PRIVATE}):\n  secret: typing.Any\nPage[S].model_validate({{'item': vault}}, from_attributes=True)",
    "settings that are changed later": f"{_ANY}class S(Holder, defer_build=True):\n  size: typing.Any\nS.model_config = {{'from_attributes': True}}\nS.model_validate(vault)",
    "private fields, written out": "Holder(what=record).model_dump()",
    "private fields of a class over one": "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass S(Record):\n  c: int = 1\nHolder(what=S()).model_dump()",
    "private fields, as JSON": "Holder(what=[record]).model_dump_json()",
    "private fields, by the older name": "Holder(what={1: record}).dict()",
    "private fields, by the class": "Holder.model_dump(Holder(what=(record,)))",
    "private fields, in a model in a model": "Holder(what=Holder(what=record)).model_dump()",
    "a private attribute in a class over the model": "class S(Item):\n  def f(self): return self._bare\nS().f()",
    "a private attribute of its own in its place": "class S(Item):\n  _bare: int = 1",
    "the end of making, again": "frozen.model_post_init(None)",
    "a copy with another method": "item.model_copy(update={'describe': lambda: 1})",
    "a copy with another private value": "item.model_copy(update={'_bare': 1})",
    "names for texts": "Item.model_rebuild(force=True, _types_namespace={'int': str})",
}  # fmt: skip


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_models_read_and_write_no_more_than_guest_code_may(source: str) -> None:
    result = _run(source)

    assert isinstance(result.error, (SandboxError, TypeError)), result.error


def test_a_model_that_is_not_to_be_made_keeps_what_it_does_its_own_way() -> None:
    class Own(Item):
        def copy(self) -> str:  # type: ignore[override]
            return "its own"

    policy = Policy.default()
    policy.cls(Own, constructable=False)

    assert Sandbox(policy).exec("own.copy()", {"own": Own()}).value == "its own"


def test_no_object_of_the_guest_is_given_what_compiled_code_does() -> None:
    source = """
import types, typing
class A: pass
a, given = A(), []
hook = {'__get_pydantic_json_schema__': lambda schema, handler: given.append(schema) or handler(schema)}
vars(a).update(hook)
class S(Holder):
    x: typing.Annotated[Item, a]
    y: typing.Annotated[Item, types.SimpleNamespace(**hook)]
found = S.model_json_schema()['properties']
"""
    result = _run(source)

    assert result.namespace["given"] == []
    assert result.namespace["found"].keys() == {"what", "x", "y"}


class Private(pydantic.BaseModel):
    token: str = SECRET


FROM_HOME = {
    "what is called": "def f(x: 'Private'): return x\nfound = pydantic.validate_call(f)({})",
    "what is called, of another module": "def f(x: 'Private'): return x\nf.__module__ = 'home'\nfound = pydantic.validate_call(f)({})",
    "a partial that is called": "def f(n, x: 'Private'): return x\nfound = pydantic.validate_call(functools.partial(f, 1))({})",
    "a model that says its module": "class S(Holder):\n  __module__ = 'home'\n  x: 'Private'\nfound = S(x={}).x",
    "a typed dict": "class D(typing.TypedDict):\n  x: 'Private'\nclass S(Holder):\n  d: D\nfound = S(d={'x': {}}).d",
    "a typed dict by a call": "D = typing.TypedDict('D', {'x': 'Private'})\nclass S(Holder):\n  d: D\nfound = S(d={'x': {}}).d",
    "a typed dict that says its module": "class D(typing.TypedDict):\n  __module__ = 'home'\n  x: 'Private'\nclass S(Holder):\n  d: D\nfound = S(d={'x': {}}).d",
}  # fmt: skip


@pytest.mark.parametrize("source", FROM_HOME.values(), ids=FROM_HOME)
def test_a_text_finds_no_class_of_the_host_by_the_name_of_a_module(
    monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """The host says the same text in its module."""
    home = types.ModuleType("home")
    vars(home).update(Private=Private)
    exec("def said(x: 'Private'): pass", vars(home))
    for name in ("home", "__main__"):
        monkeypatch.setitem(sys.modules, name, home)
    policy = Policy.default()
    policy.module(pydantic)
    policy.cls(Holder)

    done = Sandbox(policy).exec(f"import functools, pydantic, typing\n{source}")

    assert done.error is not None
    assert SECRET not in repr(done.namespace.get("found"))


def test_a_text_of_what_is_called_names_what_the_guest_calls_so() -> None:
    policy = Policy.default()
    policy.module(pydantic)
    source = """
import pydantic
class P(pydantic.BaseModel):
    n: int
class A:
    @pydantic.validate_call
    def f(self, x: "P", y: "int" = 1): return x.n + y
def inner():
    class Q(pydantic.BaseModel):
        n: int
    @pydantic.validate_call
    def f(x: "Q"): return x.n
    return f({"n": "7"})
found = A().f({"n": "3"}, "4"), inner()
"""
    assert Sandbox(policy).exec(source).namespace["found"] == (7, 7)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        "Item.model_construct(a=2)",
        "item.model_construct(a=2)",
        "Item.model_validate({'a': 2})",
        "type(item).model_validate_json('{\"a\": 2}')",
        "getattr(item, 'model_validate_strings')({'a': '2'})",
        "item.model_copy(update={'a': 2})",
    ],
)
def test_a_model_that_is_not_to_be_made_is_made_in_no_way(program: str, strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Item, constructable=False)
    policy.cls(Row)
    sandbox = Sandbox(policy)
    names = {"item": Item(), "row": Row(label="x")}

    assert isinstance(sandbox.exec(program, names).error, SandboxError)
    works = "item.a, item.model_dump()['a'], row.model_copy(update={'label': 'y'}).label, Row.model_validate({'label': 'z'}).label"
    assert sandbox.exec(works, names).value == (1, 1, "y", "z")


CHANGES = [
    "Item.model_config['frozen'] = True",
    "Item.model_fields.clear()",
    "Item.model_computed_fields['x'] = 1",
    "Item.model_fields['tags'].json_schema_extra['known'] = 2",
    "Item.model_fields['tags'].metadata.append(1)",
]


@pytest.mark.parametrize("source", CHANGES)
def test_what_a_model_of_the_host_keeps_for_itself_is_given_as_a_copy(source: str) -> None:
    before = copy.deepcopy((Item.model_config, repr(Item.model_fields), Item.model_json_schema()))

    assert _run(source).error is None
    assert (Item.model_config, repr(Item.model_fields), Item.model_json_schema()) == before


WORKS = {
    "a class over a model": "class S(Item):\n  b: int = 2\n  _own: int = 3\n  def f(self): return self._own\nfound = S(b='4').b == 4 and S().f() == 3",
    "one with settings": "class S(Item, frozen=True):\n  model_config = {'extra': 'forbid'}\nfound = S().a == 1",
    "one over one of attributes": "class S(Row, from_attributes=False):\n  b: int = 2\nfound = S(label='x').b == 2",
    "one with something to do when it is made": "class S(Frozen):\n  def model_post_init(self, context): super().model_post_init(context)\nfound = S().a == 1",
    "attributes that the host names": "found = Row.model_validate(vault).label == 'vault'",
    "attributes that the host names, for one call": "found = Holder.model_validate(vault, from_attributes=True).what is None",
    "a copy": "found = item.model_copy(update={'a': 3}).a == 3",
    "what is written out": "found = Holder(what=item).model_dump() == {'what': {'a': 1, 'tags': []}} and item.model_dump_json() == '{\"a\":1,\"tags\":[]}'",
    "its own records, written out": "import dataclasses\n@dataclasses.dataclass\nclass D:\n  _x: int = 1\nfound = Holder(what=D()).model_dump() == {'what': {'_x': 1}}",
    "a page": "found = Page[int](item='1').item == 1",
    "a field that is set": "item.a = 5\nfound = item.a == 5",
    "a schema": "found = 'a' in Item.model_json_schema()['properties'] and list(Item.model_fields) == ['a', 'tags']",
    "a model that is built anew": "found = Item.model_rebuild(force=True)",
}  # fmt: skip


@pytest.mark.parametrize("source", WORKS.values(), ids=WORKS)
def test_models_are_used_as_ever(source: str) -> None:
    result = _run(source)

    assert (result.error, result.namespace.get("found")) == (None, True)


TEXTS = {
    "itself": "class Node(BaseModel):\n  v: int\n  left: Optional['Node'] = None\n  kids: 'list[Node]' = []\nprint(Node(v=1, left={'v': 2, 'kids': [{'v': 3}]}))",
    "itself, or none": "class Node(BaseModel):\n  nxt: 'Node | None' = None\nprint(Node(nxt={}), Node.model_fields['nxt'].annotation)",
    "one that comes later": "class A(BaseModel):\n  b: 'B | None' = None\nclass B(BaseModel):\n  a: 'Optional[A]' = None\nA.model_rebuild()\nprint(A(b={'a': {}}))",
    "one that comes later, found at its first use": "class A(BaseModel):\n  b: 'Optional[B]' = None\nclass B(BaseModel):\n  n: int\nprint(A(b={'n': '1'}))",
    "in a function": "def make():\n  class Leaf(BaseModel): x: int\n  class Tree(BaseModel):\n    leaf: 'Leaf'\n    sub: 'Tree | None' = None\n  return Tree(leaf={'x': 1}, sub=Tree(leaf=Leaf(x=2)))\nprint(make())",
    "one that comes later, in a function": "def make():\n  class A(BaseModel):\n    b: 'B | None' = None\n  class B(BaseModel):\n    a: 'A | None' = None\n  A.model_rebuild()\n  return A(b={'a': {}})\nprint(make())",
    "nothing": "class A(BaseModel):\n  b: 'Nowhere'\ntry: A(b=1)\nexcept Exception as e: print(type(e).__name__, str(e)[:80])",
}  # fmt: skip
FUTURE = """\
from __future__ import annotations
import datetime
from typing import Literal, Optional
from pydantic import BaseModel, Field, ValidationError, field_validator
class Tag(BaseModel):
    name: str = Field(min_length=1)
class Node(BaseModel):
    value: int
    tag: Tag
    kind: Literal["leaf", "tree"] = "leaf"
    day: Optional[Day] = None
    kids: list[Node] = Field(default_factory=list)
    @field_validator("value")
    @classmethod
    def positive(cls, value: int) -> int:
        if value < 0: raise ValueError("negative")
        return value
Day = datetime.date
print(Node(value=1, tag={"name": "a"}, day="2024-01-02", kids=[{"value": 2, "tag": Tag(name="b")}]))
try: Node(value=-1, tag={"name": ""}, kind="bush")
except ValidationError as e: print(e)
print(Node.__annotations__, sorted(Node.model_fields))
"""


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("source", [*TEXTS.values(), FUTURE], ids=[*TEXTS, "all annotations"])
def test_a_text_in_the_annotations_of_a_model_names_what_the_guest_calls_so(
    source: str, strict: bool, native: Callable[..., str]
) -> None:
    policy = Policy.default(strict=strict)
    policy.module(pydantic)
    head = "" if source is FUTURE else "from typing import Optional\nfrom pydantic import BaseModel\n"
    result = Sandbox(policy, limits=Limits(seconds=5)).exec(head + source)

    assert (result.traceback, result.stdout) == ("", native(head + source))


def _granted(source: str) -> Any:
    policy = Policy.default()
    policy.module(pydantic)
    policy.cls(Vault, exclude=["_*", "size"])
    return Sandbox(policy, limits=Limits(seconds=5)).exec(source, {"vault": Vault()})


@pytest.mark.parametrize(
    "source",
    [
        "from pydantic import ImportString",
        "from pydantic import TypeAdapter",
        "from pydantic import create_model",
        "from pydantic import GetPydanticSchema",
        "from pydantic import FilePath",
        "import pydantic.dataclasses",
        "import pydantic.alias_generators as a\na.re",
        "import pydantic\npydantic.main",
        "from pydantic import validate_call\nvalidate_call(config={'from_attributes': True})",
        "from pydantic import BaseModel, Field\nclass S(BaseModel, from_attributes=True):\n  x: object = Field(alias='_secret')\nS.model_validate(vault)",
    ],
)
def test_the_module_imports_nothing_and_reads_no_attributes(source: str) -> None:
    assert isinstance(_granted(source).error, (SandboxError, AttributeError))


def test_the_module_makes_models() -> None:
    source = """
from pydantic import BaseModel, Field, ValidationError, field_validator, validate_call

class Point(BaseModel):
    x: int = Field(gt=0)

    @field_validator("x")
    @classmethod
    def is_small(cls, value):
        if value > 9:
            raise ValueError("too big")
        return value

@validate_call
def double(n: int) -> int:
    return 2 * n

try:
    Point(x=10)
except ValidationError as error:
    found = error.error_count(), Point(x="3").model_dump(), double("4")
"""

    result = _granted(source)

    assert (result.error, result.namespace.get("found")) == (None, (1, {"x": 3}, 8))


def test_names_of_fields_are_written_in_another_way() -> None:
    source = """
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel, to_pascal, to_snake

class User(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
    first_name: str

user = User.model_validate({"firstName": "Ann"})
found = user.model_dump(by_alias=True), User(first_name="B").first_name, to_snake("ServerName"), to_pascal("a_b")
"""

    result = _granted(source)

    assert (result.error, result.namespace.get("found")) == (
        None,
        ({"firstName": "Ann"}, "B", "server_name", "AB"),
    )


def test_a_deferred_default_is_the_hosts() -> None:
    made = functools.partial(_run, "found = Item().tags")

    made().namespace["found"].append("x")

    assert made().namespace["found"] == []


@pytest.mark.parametrize(
    "settings", [{"from_attributes": True}, {"from_attributes": 1}, {type("K", (str,), {})("a"): 1}, [], None]
)
def test_settings_that_were_stored_say_no_more_than_code_may(settings: Any) -> None:
    policy = Policy.default()
    policy.cls(Holder)
    session = Sandbox(policy).session()
    made = session.run("class S(Holder, defer_build=True):\n  size: object = None\nS").value
    before = dict(made.model_config)

    with pytest.raises(StateCorrupt, match="none that its code may say"):
        session.store_on_class(made, "model_config", settings)

    assert made.model_config == before
    session.store_on_class(made, "model_config", {**before, "title": "a"})
    assert made.model_config["title"] == "a"
