from agex import contract


def test_the_room_gives_out_these_names():
    assert contract.__all__ == [
        "Checker",
        "ContractError",
        "Example",
        "TaskSignature",
        "describe_failure",
        "doc_examples",
        "given_examples",
        "outcome_matches",
        "preview",
        "same_value",
        "short_repr",
    ]
