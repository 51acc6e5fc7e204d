"""Trainings of all models, and what the course of one says."""

from typing import Any

import httpx
from tests.contracts.store import a_metric
from tests.server.test_models import add_model, add_template, train

from pliant.core.ports import Writes

Served = Any


def listed(http: httpx.Client, **asked: Any) -> tuple[list[str], str | None]:
    answer = http.get("/trainings", params=asked).json()
    return [f"{one['model']}/{one['name']}" for one in answer["trainings"]], answer["next"]


def test_trainings_of_all_models_come_newest_first_to_those_who_see_them(server: Served) -> None:
    add_template(server.http)
    for model, name in (("a", "one"), ("b", "two"), ("a", "three")):
        add_model(server.http, model)
        server.clock.advance(1.0)
        assert train(server.http, model, name=name).status_code == 201
    assert listed(server.http)[0] == ["a/three", "b/two", "a/one"]
    page, following = listed(server.http, limit=2)
    assert page == ["a/three", "b/two"]
    assert listed(server.http, before=following)[0] == ["a/one"]
    assert server.http.get("/trainings?before=nan:x").status_code == 422
    with server.client_of("ben") as ben:
        assert listed(ben)[0] == []
        server.http.patch("/models/b", json={"shared_with": ["ben"]})
        assert listed(ben, limit=1)[0] == ["b/two"]


def test_insights_say_how_a_training_goes_and_why(server: Served) -> None:
    add_template(server.http)
    add_model(server.http)
    train(server.http, name="one", hyperparameters={"learning_rate": 0.5})
    url = "/models/digits/trainings/one/insights"
    assert server.http.get(url).json()["hints"] == []
    points = [a_metric(10 * epoch, "loss", 1 / (epoch + 1)) for epoch in range(9)]
    tests = [a_metric(10 * epoch, "val_loss", abs(epoch - 2) / 10 + 0.3) for epoch in range(1, 9)]
    server.store.write(Writes(metrics=(*points, *tests)))
    found = server.http.get(url).json()
    assert found["series"] == {"train_loss": "loss", "test_loss": "val_loss"}
    assert (found["learning_rate"], len(found["epochs"])) == (0.5, 9)
    assert [(hint["kind"], hint["value"]) for hint in found["hints"]] == [("early_stop", 2.0), ("overfits", None)]
    with server.client_of("ben") as ben:
        assert ben.get(url).status_code == 404
