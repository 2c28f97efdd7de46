"""What a registration of a class or an object says holds, whatever else is registered beside it."""

from __future__ import annotations

import types
from typing import Any

import pytest

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox

STRICT = pytest.mark.parametrize("strict", [False, True])


class Vault:
    """Has a member that is not for everyone."""

    label = "open to all"

    def secret(self) -> str:
        return "secret"


HERE = types.ModuleType("vaults")
HERE.Vault = Vault  # type: ignore[attr-defined]
Vault.__module__ = "vaults"


def leave_out(policy: Policy) -> None:
    policy.cls(Vault, name="V", exclude=["_*", "secret"])


def leave_out_of_object(policy: Policy) -> None:
    policy.module(Vault(), name="v", include=["label"])


def leave_out_of_module(policy: Policy) -> None:
    policy.module(HERE, exclude=["_*", "*._*", "Vault.secret"])


def grant(policy: Policy) -> None:
    policy.cls(Vault)


def grant_object(policy: Policy) -> None:
    policy.module(Vault(), name="w")


def grant_module(policy: Policy) -> None:
    policy.module(HERE, name="others", exclude=["_*", "*._*", "Vault.other"])


@STRICT
@pytest.mark.parametrize("other", [grant, grant_object, grant_module])
@pytest.mark.parametrize("first", [leave_out, leave_out_of_object, leave_out_of_module])
def test_what_one_registration_leaves_out_no_other_brings_back(first: Any, other: Any, strict: bool) -> None:
    for order in (first, other), (other, first):
        policy = Policy.default(strict=strict)
        for register in order:
            register(policy)
        sandbox = Sandbox(policy)
        assert isinstance(sandbox.exec("x.secret()", namespace={"x": Vault()}).error, SandboxError)
        assert sandbox.exec("x.label", namespace={"x": Vault()}).value == "open to all"


@STRICT
def test_a_registration_that_is_made_again_under_its_name_is_the_last_one(strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Vault, exclude=["_*", "secret"])
    policy.cls(Vault)

    assert Sandbox(policy).exec("Vault().secret()").value == "secret"


@STRICT
@pytest.mark.parametrize(
    "settings", [{"include": ["label"]}, {"include": "lab*"}, {"exclude": "t*"}, {"exclude": str.islower}]
)
def test_what_a_live_object_holds_itself_is_left_out_as_what_its_class_has(
    settings: Any, strict: bool
) -> None:
    service = types.SimpleNamespace(LABEL="open to all", label="open to all", token="secret")
    policy = Policy.default(strict=strict)
    policy.module(service, name="service", **settings)
    sandbox = Sandbox(policy)

    for program in ("service.token", "getattr(service, 'token')", "'{0.token}'.format(service)"):
        assert isinstance(sandbox.exec(program).error, SandboxError)
    shown = "LABEL" if settings == {"exclude": str.islower} else "label"
    assert sandbox.exec(f"service.{shown}").value == "open to all"
