"""Hyperparameters of a job, and names of secrets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job_params import (
    MAX_NAME,
    MAX_PARAMS,
    MAX_VALUE,
    ParamValue,
    as_param,
    bounded,
    merged,
    params_of_args,
)
from pliant.core.secret_names import HIDDEN, hide_password, hide_secrets, names_secret

ARGS = st.lists(
    st.one_of(st.text(max_size=20), st.sampled_from(["--lr", "-n", "--", "-", "--x=1", "0.1", "-5", "--="]))
)
VALUES: st.SearchStrategy[ParamValue] = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())


@pytest.mark.parametrize(
    ("args", "params"),
    [
        ((), {}),
        (("--lr", "0.1", "--epochs=5", "--amp", "data.csv"), {"lr": 0.1, "epochs": 5, "amp": "data.csv"}),
        (("--amp", "--lr", "1e-3"), {"amp": True, "lr": 1e-3}),
        (("--shift", "-5", "-n", "3"), {"shift": -5, "n": 3}),
        (("--weight-decay", ".01", "--name="), {"weight_decay": 0.01, "name": ""}),
        (("train", "x", "-", "--", "--lr", "1"), {}),
        (("--api-key", "abc", "--hf_token=xyz"), {"api_key": HIDDEN, "hf_token": HIDDEN}),
        (("--url", "http://ann:pw@host/x"), {"url": f"http://ann:{HIDDEN}@host/x"}),
        (("--lr", "nan"), {"lr": "nan"}),
    ],
)
def test_arguments_say_hyperparameters(args: tuple[str, ...], params: dict[str, ParamValue]) -> None:
    assert params_of_args(args) == params


@given(ARGS)
def test_any_arguments_can_be_read(args: list[str]) -> None:
    params = params_of_args(args)
    assert bounded(params) == params
    json.dumps(params, allow_nan=False)


@given(st.dictionaries(st.text(), VALUES))
def test_what_is_kept_is_bounded_and_stays_as_it_is(params: dict[str, ParamValue]) -> None:
    kept = bounded(params)
    assert bounded(kept) == kept
    assert all(0 < len(name) <= MAX_NAME and name.isprintable() for name in kept)
    assert all(len(value) <= MAX_VALUE for value in kept.values() if isinstance(value, str))
    json.dumps(kept, allow_nan=False)


def test_there_are_not_more_than_so_many() -> None:
    assert len(bounded({str(number): number for number in range(MAX_PARAMS + 1)})) == MAX_PARAMS
    assert bounded({"x": "y" * (MAX_VALUE + 1)}) == {"x": "y" * MAX_VALUE}
    assert bounded({"x": 10**5000}) == {"x": "a number of many digits"}


def test_newer_ones_take_the_place_of_older_ones() -> None:
    assert merged({"lr": 0.1, "epochs": 5}, {"lr": 0.2, "model": "mlp"}) == {"lr": 0.2, "epochs": 5, "model": "mlp"}


def test_what_is_no_plain_value_is_kept_as_text() -> None:
    class Scalar:
        shape = ()

        def item(self) -> float:
            return 0.5

    assert as_param(Scalar()) == 0.5
    assert as_param([1, "a"]) == "[1, 'a']"
    assert as_param(None) is None


@pytest.mark.parametrize(
    "name", ["WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "db_password", "PGPASSWD", "X_PAT"]
)
def test_names_of_secrets(name: str) -> None:
    assert names_secret(name)
    assert hide_secrets({name: "x"}) == {name: HIDDEN}
    assert hide_secrets({name: ""}) == {name: ""}, "that there is none is no secret"


@pytest.mark.parametrize("name", ["WANDB_MODE", "MLFLOW_TRACKING_URI", "KEYS_FILE", "TOKENIZERS_PARALLELISM", "lr"])
def test_names_of_what_is_none(name: str) -> None:
    assert hide_secrets({name: "x"}) == {name: "x"}


def test_passwords_in_addresses_are_hidden() -> None:
    assert hide_password("see http://ann:s3cret@host:1/x and https://host/") == (
        f"see http://ann:{HIDDEN}@host:1/x and https://host/"
    )
