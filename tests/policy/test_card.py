from dataclasses import replace

from keystride.policy.card import card
from keystride.policy.runtime import Policy
from keystride.policy.trained import Trained


def test_a_card_says_where_the_policy_comes_from(policy: Policy, trained: Trained) -> None:
    told = replace(policy.metadata, training_data="mann: 3 clips; own clips", licence="CC BY-NC 4.0")
    text = card("go2-any", told, trained.settings | {"start_from": "runs/first"}, 12.34)
    for part in (
        "# go2-any\n",
        "any subset of position, roll, pitch, yaw and posture",
        "- mann: 3 clips\n- own clips\n",
        "under CC BY-NC 4.0, as the clips do. It may not be used commercially.",
        "0.1 million control steps, 12.3 hours",
        "begun with the weights of `runs/first`",
        "Not measured yet",
        "## Known limits",
    ):
        assert part in text


def test_own_clips_alone_forbid_nothing(policy: Policy, trained: Trained) -> None:
    text = card("own", policy.metadata, trained.settings, 1.0)
    assert "commercially" not in text
    assert "begun with" not in text
