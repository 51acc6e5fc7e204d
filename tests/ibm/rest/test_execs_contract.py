"""Execs, applications and logs, called by IBM's own client over TLS against a real server."""

import io
import json
import zipfile
from typing import Any

import httpx
import pytest
from ibm_cloud_sdk_core import ApiException
from ibm_cloud_sdk_core.authenticators import BearerTokenAuthenticator, NoAuthAuthenticator
from ibm_wmla.wmla_api_v1 import Batch, DeepLearningImpactV1, DLFramework, FrameworkDetail, SparkApplicationDetail
from tests.ibm.rest.conftest import CONDUCTOR, DEEP_LEARNING, PASSWORD, Site, packed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_training_is_submitted_followed_and_fetched(
    site: Site, ibm: DeepLearningImpactV1, trained: dict[str, Any]
) -> None:
    assert trained["id"] == trained["execId"]
    assert trained["id"].startswith("wmla-")
    number = int(trained["id"].removeprefix("wmla-"))
    assert trained["appId"].startswith("app-2")
    assert trained["appId"].endswith(f"-{number:04d}")
    assert trained["submissionId"].startswith("driver-2")
    expected = {"creator": "ada", "elastic": True, "numWorker": 2, "framework": "edtPyTorch", "appName": "tiny"}
    assert {name: trained[name] for name in expected} == expected
    batch = Batch.from_dict(trained)
    assert (batch.user_name, batch.app_id, batch.state) == ("ada", trained["appId"], "FINISHED")
    assert trained["id"] in [one["id"] for one in ibm.list_execs().get_result()]
    log = ibm.get_platform_rest_deeplearning_exec_log(trained["id"]).get_result()
    assert log
    assert all("Train,\tTimestamp: " in line for line in log.splitlines())
    with site.plain(auth=("ada", PASSWORD)) as http:
        text = http.get(f"{DEEP_LEARNING}/execs/{trained['id']}/log").text
    assert all(line in text for line in log.splitlines())
    for line in (
        "Using pytorch backend.",
        "--------START TRAINING--------",
        "tag train_loss",
        "finishes with state FINISHED.",
    ):
        assert line in text
    result = ibm.get_platform_rest_deeplearning_exec_result(trained["id"]).get_result()
    with zipfile.ZipFile(io.BytesIO(result.content)) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert {"model/model.pt", "model/train/model_epoch_final.pth", "model/train/model_epoch_1.pth"} <= set(names)
    assert any(name.endswith("/evaluation-metrics.txt") for name in names)
    assert not any(name.startswith("checkpoint") for name in names)
    disposition = result.headers["Content-Disposition"].split(";")
    assert disposition[1:] == [f"filename={trained['id']}.zip", f"size={len(result.content)}"]


def test_logs_by_kind_and_by_lines(site: Site, trained: dict[str, Any]) -> None:
    with site.plain(auth=("ada", PASSWORD)) as http:
        base = f"{DEEP_LEARNING}/execs/{trained['id']}/log"
        out, err, both = (http.get(base, params={"logType": kind}) for kind in ("outlog", "errlog", "outerrlog"))
        assert [one.status_code for one in (out, err, both)] == [200, 200, 200]
        assert out.headers["content-type"].startswith("text/plain")
        assert "START TRAINING" in out.text
        assert "START TRAINING" not in err.text
        assert out.text in both.text
        assert f"==> stdout of {trained['id']}." in both.text
        assert f"Job {trained['id']} finishes with state FINISHED." in out.text
        assert http.get(base, params={"logType": "otherlog"}).status_code == 400
        path = f"{DEEP_LEARNING}/scheduler/applications/{trained['appId']}"
        assert http.get(f"{path}/driver/logs/stdout").text == out.text
        last = http.get(f"{path}/driver/logs/stdout", params={"lastlines": 1}).text
        assert last.splitlines() == [out.text.splitlines()[-1]]
        launcher = http.get(f"{path}/driver/logs/launcherlog").text
        assert "job.submitted" in launcher
        assert "completed" in launcher
        executors = http.get(path).json()["task12n"]
        assert executors
        by_number = http.get(f"{path}/executor/1/logs/stdout")
        assert by_number.text == http.get(f"{path}/executor/{executors[0]['id']}/logs/stdout").text
        assert "task.started" in http.get(f"{path}/executor/1/logs/launcherlog").text
        for wrong in (
            "driver/logs/other",
            "executor/1/logs/other",
            "executor/99/logs/stdout",
            "executor/x/logs/stdout",
        ):
            assert http.get(f"{path}/{wrong}").status_code == 404


def test_what_is_shared_is_seen_and_not_changed(site: Site, trained: dict[str, Any]) -> None:
    path, job = f"{DEEP_LEARNING}/execs/{trained['id']}", f"job-{trained['id'].removeprefix('wmla-')}"
    with site.plain(auth=("ada", PASSWORD)) as ada, site.plain(auth=("ben", PASSWORD)) as ben:
        assert ben.get(path).status_code == 404
        assert ada.put(f"/v1/jobs/{job}/shares", json={"shared_with": ["ben"]}).status_code == 200
        assert ben.get(path).json()["creator"] == "ada"
        assert trained["id"] in [one["id"] for one in ben.get(f"{DEEP_LEARNING}/execs").json()]
        assert [ben.post(f"{path}/stop").status_code, ben.delete(path).status_code] == [403, 403]
        assert site.ibm("ben").delete_exec().get_result()["deleted"] == 0
        assert ada.put(f"/v1/jobs/{job}/shares", json={"shared_with": []}).status_code == 200
        assert ben.get(path).status_code == 404


def test_applications_by_every_parameter(ibm: DeepLearningImpactV1, trained: dict[str, Any]) -> None:
    app_id = trained["appId"]

    def ids(**parameters: str) -> list[str]:
        return [one["applicationid"] for one in ibm.get_applications(**parameters).get_result()]

    assert ids(applicationid=app_id) == [app_id]
    assert ids(driverid=trained["submissionId"]) == [app_id]
    assert app_id in ids(applicationname="tiny")
    assert app_id not in ids(applicationname="huge")
    assert app_id in ids(search=app_id[4:])
    assert app_id not in ids(search="no such")
    assert app_id in ids(state="FINISHED")
    assert app_id not in ids(state="RUNNING,KILLED")
    assert ids(state="NEW") == []
    assert app_id in ids(sig_id="default")
    assert ids(sig_id="other") == []
    everything = ids()
    assert ids(sort="submittedtime") == ids(sort="-submittedtime")[::-1]
    assert ids(start="0", length="1") == everything[:1]
    assert ids(sort="applicationid", order="desc")[0] == sorted(everything)[-1]
    with pytest.raises(ApiException, match="there is no field"):
        ids(sort="colour")
    detail = SparkApplicationDetail.from_dict(ibm.get_applications(applicationid=app_id).get_result()[0])
    assert (detail.username, detail.state, detail.sig_name) == ("ada", "FINISHED", "default")
    assert detail.driver.id == trained["submissionId"]
    assert detail.executors[0].state == "FINISHED"
    assert ibm.get_app_instances().get_result()[0]["uuid"] == "default"


def test_the_engine_s_records(site: Site, trained: dict[str, Any]) -> None:
    with site.plain(auth=("ada", PASSWORD)) as http:
        base = f"{DEEP_LEARNING}/scheduler/engine/applications"
        (record,) = http.get(f"{base}/{trained['appId']}").json()
        assert record["consumer"] == "/pliant/default"
        assert record["tag"] == "/pliant/default/ada"
        assert (record["type"], record["state"], record["task12n_num"]) == ("ELASTIC", "FINISHED", 2)
        assert isinstance(record["submit_time"], int)
        assert record["task12n_resreq"] == "ngpus=1"
        listed = http.get(base, params={"start": 0, "length": 9, "sort": "-submit_time", "state": "FINISHED,KILLED"})
        assert trained["appId"] in [one["id"] for one in listed.json()]
        tree = http.get(f"{DEEP_LEARNING}/resplans/resplantree").json()
        assert tree["id"] == "pliant"
        assert "default" in [child["id"] for child in tree["childTreeDto"]]
        assert http.get(f"{DEEP_LEARNING}/resplans/resplan/default").json()["pid"] == "pliant"
        assert http.get(f"{DEEP_LEARNING}/resplans/resplan/nobody").status_code == 404
        assert http.get(f"{DEEP_LEARNING}/scheduler/kubernetesobjects", params={"type": "pod"}).json() == {"items": []}


def test_the_conductor_s_routes(site: Site, trained: dict[str, Any]) -> None:
    with site.plain() as http:
        logon = http.get(f"{CONDUCTOR}/auth/logon", auth=("ada", PASSWORD))
        assert logon.json() == {"user": "ada"}
        assert "Secure" in logon.headers["set-cookie"]
        assert "HttpOnly" in logon.headers["set-cookie"]
        groups = http.get(f"{CONDUCTOR}/instances").json()
        assert [group["state"] for group in groups if group["name"] == "default"] == ["STARTED"]
        assert http.get(f"{CONDUCTOR}/instances", params={"id": "default", "fields": "state"}).json() == [
            {"id": "default", "state": "STARTED"}
        ]
        assert http.get(f"{CONDUCTOR}/instances/default").json()["id"] == "default"
        assert http.get(f"{CONDUCTOR}/instances/nobody").status_code == 404
        apps = http.get(f"{CONDUCTOR}/instances/default/applications", params={"state": "FINISHED"}).json()
        app = next(one for one in apps if one["applicationid"] == trained["appId"])
        assert app["gpuslots"] == 0
        assert app["apprunduration"] > 0
        base = f"{CONDUCTOR}/instances/default/applications/{app['driver']['id']}"
        out = http.get(f"{base}/logs/stdout")
        download = http.get(f"{base}/logs/stdout/download")
        assert "START TRAINING" in out.text
        assert download.text == out.text
        assert download.headers["content-disposition"].startswith("attachment")
        executor = app["executors"][0]["id"]
        assert (
            http.get(f"{base}/{executor}/logs/stdout").text == http.get(f"{base}/{executor}/logs/stdout/download").text
        )
        assert http.get(base).json()["applicationid"] == trained["appId"]
        assert http.get(f"{CONDUCTOR}/instances/nobody/applications").status_code == 404
        foreign = http.post(f"{CONDUCTOR}/auth/logoff", headers={"Origin": "https://elsewhere.example"})
        assert foreign.status_code == 403
        assert "another server" in foreign.text
        assert http.post(f"{CONDUCTOR}/auth/logoff").status_code == 200
        assert http.get(f"{CONDUCTOR}/instances").status_code == 401


def test_every_way_to_show_who_one_is(site: Site) -> None:
    with site.plain(auth=("ada", PASSWORD)) as http:
        token = http.get("/auth/v1/logon").json()["accessToken"]
    client = site.ibm(authenticator=BearerTokenAuthenticator(token))
    assert client.get_deep_learning_conf().get_status_code() == 200
    bare = site.ibm(authenticator=NoAuthAuthenticator())
    assert bare.list_execs(headers={"X-Auth-Token": token}).get_status_code() == 200
    with pytest.raises(ApiException) as none:
        bare.list_execs()
    assert none.value.status_code == 401
    for status, auth in ((401, ("ada", "wrong password")), (401, ("nobody", PASSWORD)), (403, ("vic", PASSWORD))):
        with site.plain(auth=auth) as http:
            refused = http.delete(f"{DEEP_LEARNING}/execs")
            assert refused.status_code == status
            assert refused.headers["content-type"].startswith("text/plain")
    with site.plain({"Authorization": f"Bearer {token}"}) as http:
        assert http.post("/auth/v1/logoff").status_code == 200
        assert http.get(f"{DEEP_LEARNING}/conf").status_code == 401
        assert http.get("/auth/v1/logon").status_code == 401


def test_settings_status_and_frameworks(site: Site, ibm: DeepLearningImpactV1) -> None:
    conf = ibm.get_deep_learning_conf().get_result()
    assert conf["MSD_ENABLED"] == "true"
    assert conf["DLI_SHARED_FS"] == "frameworks", "whole paths are for who runs the server"
    with site.plain(auth=("ada", PASSWORD)) as http:
        status = http.get(f"{DEEP_LEARNING}/status").json()
    assert (status["status"], status["slots"]) == ("ok", 4)
    names = [one["name"] for one in ibm.get_platform_rest_deeplearning_execs_frameworks().get_result()]
    assert names[:3] == ["PyTorch", "distPyTorch", "edtPyTorch"]
    first = DLFramework.from_dict(ibm.get_platform_rest_deeplearning_execs_frameworks().get_result()[0])
    assert first.framework_version
    assert isinstance(first.desc, list)
    engines = ibm.get_deep_learning_frameworks(backend="PyTorch").get_result()
    assert [FrameworkDetail.from_dict(one).accelerator for one in engines] == ["Single", "Native", "Elastic"]
    assert ibm.get_deep_learning_frameworks(backend="Caffe").get_result() == []
    assert ibm.get_all_deep_learning_frameworks().get_result()[:3] == names[:3]


def test_a_distributed_program_from_a_folder_and_a_failing_one(site: Site, ibm: DeepLearningImpactV1) -> None:
    script = (
        "import os, sys, torch.distributed as dist\n"
        "from part import word\n"
        "dist.init_process_group('gloo')\n"
        "print(word, os.environ['WMLA_NWORKER'], dist.get_world_size(), os.environ['MINE'], sys.argv[1:])\n"
        "dist.barrier()\n"  # who ends before the others are connected makes them fail
        "dist.destroy_process_group()\n"
    )
    files = {"folder/run.py": script, "folder/part.py": "word = 'hello'\n"}
    args = (
        "--exec-start distPyTorch --model-dir folder --model-main run.py --numWorker 2 --msd-env MINE=yes "
        "--workerMemory 4G --batch-size 7"
    )
    made = site.start(ibm, args, packed(files, mode="w:gz"))
    assert made["notes"] == (
        "--workerMemory is accepted and has no effect: a task has its slots, and no other share of a machine is "
        "measured out"
    )
    bad = site.start(ibm, "--exec-start PyTorch --model-main bad.py", "raise SystemExit('not today')\n")
    site.until(ibm, made["id"], "FINISHED")
    text = ibm.get_platform_rest_deeplearning_exec_log(made["id"]).get_result()
    assert "hello 2 2 yes ['--batch-size', '7']" in text
    launcher = f"{DEEP_LEARNING}/scheduler/applications/{made['appId']}/driver/logs/launcherlog"
    with site.plain(auth=("ada", PASSWORD)) as http:
        assert "warning" in http.get(launcher).text
        assert "--workerMemory is accepted" in http.get(launcher).text
    failed = site.until(ibm, bad["id"], "ERROR")
    assert "not today" in ibm.get_platform_rest_deeplearning_exec_log(bad["id"]).get_result()
    assert failed["stateReason"]


def test_a_program_that_is_no_python_runs(site: Site, ibm: DeepLearningImpactV1) -> None:
    shell = '#!/bin/sh\necho "rank $RANK of $WORLD_SIZE: $@ in $(ls)"\nexit 0\n'
    one = site.start(ibm, "--exec-start distPyTorch --numWorker 2 --model-main run.sh --a 'b c'", shell)
    tar = packed({"./tool.sh": shell, "./x.txt": "x"})
    two = site.start(ibm, "--exec-start PyTorch --user-cmd -- bash tool.sh 1 2", tar)
    for made, expected in ((one, "rank 0 of 2: --a b c in"), (two, "rank 0 of 1: 1 2 in")):
        site.until(ibm, made["id"], "FINISHED")
        assert expected in ibm.get_platform_rest_deeplearning_exec_log(made["id"]).get_result()


def test_bring_your_own_framework(site: Site, ibm: DeepLearningImpactV1) -> None:
    folder = site.pool.home / "frameworks"
    folder.mkdir(exist_ok=True)
    generator = folder / "StubCmdGen.py"
    generator.write_text(
        "import json, os, sys\nprint('chatter')\n"
        "print(json.dumps({'CMD': 'sh ' + os.environ['MODEL'] + ' ' + os.environ['APP_NAME'] + "
        "' ' + os.environ['GPU_PER_WORKER'] + ' ' + ' '.join(sys.argv[1:])}))\n"
    )
    conf = {
        "desc": [{" ": "Runs anything."}],
        "appName": "stub",
        "maxWorkers": 1,
        "frameworkCmdGenerator": "StubCmdGen.py",
    }
    (folder / "Stub.conf").write_text(json.dumps(conf))
    (folder / "Broken.conf").write_text("{")
    listed = {one["name"]: one for one in ibm.get_platform_rest_deeplearning_execs_frameworks().get_result()}
    assert listed["Stub"]["desc"] == ["Runs anything."]
    assert "not JSON" in listed["Broken"]["desc"][0]
    made = site.start(ibm, "--exec-start Stub --model-main go.sh --epochs 3", "echo ran $@\n")
    site.until(ibm, made["id"], "FINISHED")
    assert "ran stub 1 --epochs 3" in ibm.get_platform_rest_deeplearning_exec_log(made["id"]).get_result()
    assert made["framework"] == "Stub"
    assert made["appName"] == "stub"
    with pytest.raises(ApiException, match="cannot be used"):
        site.start(ibm, "--exec-start Broken --model-main go.sh", "")
    with pytest.raises(ApiException, match="is not 1 to 1"):
        site.start(ibm, "--exec-start Stub --numWorker 2 --model-main go.sh", "")


def test_json_with_hardware_instead_of_a_line(site: Site) -> None:
    data = {
        "args": "--exec-start distPyTorch \\\n --msd-env HF_HOME=/tmp \\\n "
        "--user-cmd -- bash -c 'echo $WORLD_SIZE $HF_HOME'",
        "hardwareSpec": {
            "nodes": {"num_nodes": 2, "mem": {"size": "16g"}, "gpu": {"num_gpu": 1}, "cpu": {"units": "0.25"}}
        },
        "dataSource": [{"type": "fs", "location": {"paths": "/tmp"}}],
    }
    with site.plain(auth=("ada", PASSWORD)) as http:
        made = http.post(f"{DEEP_LEARNING}/execs/", files={"data": (None, json.dumps(data))})
        assert made.status_code == 200, made.text
        assert made.json()["numWorker"] == 2
        assert len(made.json()["notes"].splitlines()) == 2
        client = site.ibm()
        site.until(client, made.json()["id"], "FINISHED")
        assert "2 /tmp" in client.get_platform_rest_deeplearning_exec_log(made.json()["id"]).get_result()


def test_stop_and_delete(site: Site, ibm: DeepLearningImpactV1) -> None:
    endless = "import time\nwhile True:\n    time.sleep(0.05)\n"
    first, second = (site.start(ibm, "--exec-start PyTorch --model-main wait.py", endless) for _ in range(2))
    with site.plain(auth=("ben", PASSWORD)) as ben:
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("GET", "/log"), ("GET", "/result")):
            assert ben.request(method, f"{DEEP_LEARNING}/execs/{first['id']}{path}").status_code == 404
        assert ben.put(f"{DEEP_LEARNING}/scheduler/applications/{first['appId']}/stop").status_code == 404
        assert first["id"] not in [one["id"] for one in ben.get(f"{DEEP_LEARNING}/execs").json()]
        assert ben.delete(f"{DEEP_LEARNING}/execs").json()["deleted"] == 0
    ibm.post_platform_rest_deeplearning_exec_stop(first["id"])
    site.until(ibm, first["id"], "KILLED")
    with pytest.raises(ApiException) as again:
        ibm.post_platform_rest_deeplearning_exec_stop(first["id"])
    assert again.value.status_code == 400
    assert "already been stopped" in again.value.message
    with site.plain(auth=("ada", PASSWORD)) as http:
        assert http.put(f"{DEEP_LEARNING}/scheduler/applications/{second['appId']}/stop").status_code == 200
        site.until(ibm, second["id"], "KILLED")
        assert http.delete(f"{DEEP_LEARNING}/execs/{first['id']}").status_code == 200
        assert http.get(f"{DEEP_LEARNING}/execs/{first['id']}").status_code == 404
    kept = [one["id"] for one in ibm.list_execs().get_result()]
    assert first["id"] not in kept
    assert second["id"] in kept


def test_lists_are_sorted_cut_and_filtered(site: Site, trained: dict[str, Any]) -> None:
    with site.plain(auth=("ada", PASSWORD)) as http:

        def ids(**query: Any) -> list[str]:
            found = http.get(f"{DEEP_LEARNING}/execs", params=query)
            assert found.status_code == 200, found.text
            return [one["id"] for one in found.json()]

        numbers = [int(one.removeprefix("wmla-")) for one in ids(sort_by="id:asc")]
        assert numbers == sorted(numbers)
        assert ids(sort_by="id:desc", limit=2) == ids()[:2]
        assert trained["id"] in ids(state="FINISHED")
        assert trained["id"] not in ids(state="ERROR")
        assert http.get(f"{DEEP_LEARNING}/execs", params={"sort_by": "id:down"}).status_code == 400
        assert http.get(f"{DEEP_LEARNING}/execs", params={"limit": "many"}).status_code == 400


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        ("", 400, "there is no ''; there are PyTorch, "),
        ("--exec-start Caffe --model-main a.py", 400, "there is no 'Caffe'"),
        ("--exec-start PyTorch", 400, "nothing is named to run"),
        ("--exec-start PyTorch --model-main 'a.py", 400, "is not closed"),
        ("--exec-start PyTorch --numWorker 2 --model-main a.py", 400, "is not 1 to 1"),
        ("--exec-start PyTorch --pbmodel-name VGG16", 400, "no prebuilt models"),
        ("--exec-start PyTorch --model-main a.py --ig nobody", 400, "Instance group name nobody not found"),
        (
            "--exec-start PyTorch --model-main a.py --cs-datastore-meta type=fs,data_path=none",
            400,
            "neither a data set 'none'",
        ),
        ("--exec-start edtPyTorch --model-main a.sh", 400, "Python scripts only"),
        ("--exec-start PyTorch --user-cmd", 400, "the command is missing"),
    ],
)
def test_a_wrong_submission_is_refused_in_words(site: Site, args: str, status: int, message: str) -> None:
    with pytest.raises(ApiException) as error:
        site.start(site.ibm(), args, "print()")
    assert error.value.status_code == status
    assert message in error.value.message
    with site.plain({"Accept": "application/json"}, auth=("ada", PASSWORD)) as http:
        refused = http.post(f"{DEEP_LEARNING}/execs", params={"args": args}, files={"file": b"print()"})
        assert refused.json()["code"] == status
        assert message in refused.json()["message"]


def test_an_unknown_group_is_refused_in_ibm_s_words(site: Site, ibm: DeepLearningImpactV1) -> None:
    with pytest.raises(ApiException, match="Instance group name MyGroup not found"):
        site.start(ibm, "--exec-start PyTorch --model-main a.py", "print()", group="MyGroup")


def test_what_is_not_here_says_so(ibm: DeepLearningImpactV1) -> None:
    calls = (
        (ibm.get_edi_models, "models that answer are deployed and asked below /dlim/v1, not here"),
        (lambda: ibm.get_validations("m"), "validations of trained models are not part of this server yet"),
        (lambda: ibm.get_predict_by_predict_name("p"), "prediction jobs are not part of Pliant"),
    )
    for call, message in calls:
        with pytest.raises(ApiException, match=message) as error:
            call()
        assert error.value.status_code == 501


def test_requests_that_are_no_form_are_refused(site: Site) -> None:
    with site.plain(auth=("ada", PASSWORD)) as http:
        args = {"args": "--exec-start PyTorch --model-main a.py"}
        wrong: list[dict[str, Any]] = [{"json": {}}, {"files": {"colour": b"red"}}, {"files": {"data": (None, "{")}}]
        for kwargs in wrong:
            assert http.post(f"{DEEP_LEARNING}/execs", params=args, **kwargs).status_code == 400
        assert http.post(f"{DEEP_LEARNING}/execs").status_code == 400
        assert isinstance(http, httpx.Client)
        unknown = http.get(f"{DEEP_LEARNING}/no/such/path", headers={"Accept": "application/json"})
        assert (unknown.status_code, unknown.json()["code"]) == (404, 404)
        assert http.post(f"{CONDUCTOR}/instances", json={"conductorinstancename": "mine"}).status_code == 403
        assert http.request("DELETE", f"{DEEP_LEARNING}/resplans/resplan/default").status_code == 403
