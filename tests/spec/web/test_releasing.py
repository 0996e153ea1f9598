"""One click is one release: paid once, written once, never over something else; the ledger decides between clicks."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import threading

import numpy as np
import pytest
from patience import until

import privcov as pc
from privcov.errors import InputError
from privcov.releases.codec import FORM
from privcov.releases.documents import to_text
from privcov.releases.signing import keygen
from privcov.table.fragments import Fragment
from privcov.text import files
from privcov.web.asking import Given
from privcov.web.places import Directory
from privcov.web.simulating import Simulator
from privcov.web.workbench import Workbench

ONE, TWO = "1" * 32, "2" * 32


def test_a_release_pays_the_ledger_and_is_the_library_s(served, order):
    assert served.ask("release", request=ONE, **order).json["state"] in (
        "waiting",
        "paying",
        "reading",
        "done",
    )
    job = served.finished(ONE)
    assert (job["state"], job["output"]) == ("done", "people.release.json")
    assert served.spent == "1"
    made = pc.load(served.folder / "people.release.json")
    assert made.rows == 300
    assert str(made.certificate.loss) == "pure differential privacy, epsilon = 1, replace-one"
    assert made.schema == pc.Schema.read(served.folder / "people.toml")
    log = pc.Ledger.open(served.folder / "people.ledger").log()
    assert [entry.kind for entry in log] == ["opened", "paid", "done"]


def test_the_same_click_sent_many_times_at_once_is_paid_once(served, order):
    replies = []
    threads = [
        threading.Thread(target=lambda: replies.append(served.ask("release", request=ONE, **order).status))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [200] * 8
    assert served.finished(ONE)["state"] == "done"
    assert served.ask("release", request=ONE, **order).json["state"] == "done"
    assert served.spent == "1"


def test_eight_requests_for_one_name_pay_once(served, order):
    """Each is a click of its own; the file can be written once, so one is paid for."""
    order["loss"] = {**order["loss"], "epsilon": "0.1"}
    names = [str(number) * 32 for number in range(8)]
    threads = [
        threading.Thread(target=lambda name=name: served.ask("release", request=name, **order))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    known = [name for name in names if served.ask("job", request=name).status == 200]
    ends = [served.finished(name) for name in known]  # the others came when the file was there
    assert sorted(end["state"] for end in ends) == ["done"] + ["failed"] * (len(known) - 1)
    assert {end["error"]["code"] for end in ends if end["error"]} <= {"E401", "E430"}
    assert served.spent == "1/10"
    assert not list(served.folder.glob(".*"))


def test_a_name_that_another_process_is_writing_to_is_refused_before_paying(served, order):
    with files.reserved(served.folder / "people.release.json", force=False):
        served.ask("release", request=ONE, **order)
        job = served.finished(ONE)
    assert (job["state"], job["error"]["code"]) == ("failed", "E430")
    assert served.spent == "0"


def test_a_workbench_that_is_ending_pays_for_nothing_more(served, order):
    served.workbench.jobs._ending = True
    served.ask("release", request=ONE, **order)
    job = served.finished(ONE)
    assert (job["state"], job["error"]["code"]) == ("failed", "E431")
    assert served.spent == "0"
    assert not list(served.folder.glob("*.release.json"))


def test_a_click_that_a_restarted_server_sees_again_is_paid_once(served, order):
    served.ask("release", request=ONE, **order)
    served.finished(ONE)
    again = type(served)(folder=served.folder, workbench=Workbench(directory=served.workbench.directory))
    (served.folder / "people.release.json").rename(served.folder / "moved.release.json")
    again.ask("release", request=ONE, **order)
    job = again.finished(ONE)
    again.workbench.close()
    assert (job["state"], job["error"]["code"]) == ("refused", "E303")
    assert served.spent == "1"


def test_one_name_for_two_different_requests_is_refused(served, order):
    served.ask("release", request=ONE, **order)
    served.finished(ONE)
    other = {**order, "loss": {**order["loss"], "epsilon": "0.5"}}
    reply = served.ask("release", request=ONE, **other)
    assert (reply.status, reply.codes) == (422, ["E293"])
    assert served.spent == "1"


def test_of_two_requests_that_do_not_both_fit_the_ledger_takes_one(served, order):
    order["loss"] = {**order["loss"], "epsilon": "1.5"}
    served.ask("release", request=ONE, **{**order, "output": "one.release.json"})
    served.ask("release", request=TWO, **{**order, "output": "two.release.json"})
    jobs = [served.finished(ONE), served.finished(TWO)]
    assert sorted(job["state"] for job in jobs) == ["done", "refused"]
    (loser,) = [job for job in jobs if job["state"] == "refused"]
    assert loser["error"]["code"] == "E301"
    assert "This release costs ε = 1.5; only 0.5 of 2 is left." in loser["error"]["text"]
    assert served.spent == "3/2"
    assert len(list(served.folder.glob("*.release.json"))) == 1


def test_auto_chooses_for_the_purpose_that_the_page_names(served, order):
    served.ask("release", request=ONE, purpose="regression", **order)
    assert served.finished(ONE)["state"] == "done"
    assert pc.load(served.folder / "people.release.json").certificate.options["auto"] == "regression"
    assert served.ask("quote", purpose="pleasure", **order).codes == ["E261"]


def test_losses_that_look_alike_are_still_two_requests(served, order):
    """Six digits are shown and all of them count."""
    order["loss"] = {**order["loss"], "epsilon": "0.10000000001"}
    served.ask("release", request=ONE, **order)
    served.finished(ONE)
    order["loss"] = {**order["loss"], "epsilon": "0.10000000002"}
    assert served.ask("release", request=ONE, **order).codes == ["E293"]


def test_a_quote_says_the_price_and_pays_nothing(served, order):
    quote = served.ask("quote", **order).json
    assert (quote["mechanism"], quote["price"], quote["refusal"]) == ("symmetric-wishart", "epsilon 1", "")
    assert quote["balance"]["amounts"] == [
        {"word": "epsilon", "total": "2", "spent": "0", "left": "2", "percent": 0}
    ]
    assert served.spent == "0"


def test_a_quote_gives_the_ledger_s_refusal_in_words(served, order):
    order["loss"] = {**order["loss"], "epsilon": "2.5"}
    assert "This release costs ε = 2.5; only 2 of 2 is left." in served.ask("quote", **order).json["refusal"]
    order["loss"] = {"kind": "zcdp", "rho": "0.1", "neighbours": "replace-one"}
    assert "pure epsilon only" in served.ask("quote", **order).json["refusal"]


@pytest.mark.parametrize("amount", ["1e-300", "1e-61", "1e999999999", "1_0", "1/0", "9" * 100, "٣"])
def test_an_amount_beyond_any_use_is_refused_beside_its_field(served, order, amount):
    order["loss"] = {**order["loss"], "epsilon": amount}
    reply = served.ask("quote", **order)
    assert (reply.status, reply.codes) == (422, ["E201"])
    assert "epsilon" in reply.json["errors"][0]["field"]


def test_a_release_over_the_budget_is_refused_and_leaves_nothing(served, order):
    order["loss"] = {**order["loss"], "epsilon": "2.5"}
    served.ask("release", request=ONE, **order)
    job = served.finished(ONE)
    assert (job["state"], job["error"]["code"]) == ("refused", "E301")
    assert served.spent == "0"
    assert not list(served.folder.glob("*.release.json"))


@pytest.mark.parametrize(
    ("word", "name", "code"),
    [
        ("output", "../people.release.json", "E119"),
        ("output", "people.json", "E406"),
        ("output", "", "E119"),
        ("output", ".x.release.json", "E406"),
        ("data", "../people.csv", "E119"),
        ("data", "/etc/passwd", "E119"),
        ("data", "", "E119"),
        ("ledger", "../people.ledger", "E119"),
        ("ledger", "people.csv", "E296"),
        ("ledger", "", "E302"),
        ("ledger", "nothing.ledger", "E119"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused_beside_its_field_before_paying(
    served, order, word, name, code
):
    reply = served.ask("release", request=ONE, **{**order, word: name})
    assert reply.codes == [code]
    assert word in reply.errors
    assert served.spent == "0"


def test_a_file_that_is_there_is_never_replaced_and_nothing_is_paid(served, order):
    (served.folder / "people.release.json").write_text("precious")
    reply = served.ask("release", request=ONE, **order)
    assert (reply.status, reply.codes) == (422, ["E401"])
    assert (served.folder / "people.release.json").read_text() == "precious"
    assert served.spent == "0"


def test_a_table_that_does_not_fit_is_refused_in_words_before_paying(served, order):
    (served.folder / "other.csv").write_text("age,sex\n1,F\n")
    served.ask("release", request=ONE, **{**order, "data": "other.csv"})
    job = served.finished(ONE)
    assert (job["state"], job["error"]["code"]) == ("failed", "E102")
    assert served.spent == "0"


@pytest.mark.parametrize("request_id", ["", "1" * 31, "G" * 32, "1" * 33, "../../etc/passwd"])
def test_a_request_has_a_name_of_32_digits(served, order, request_id):
    assert served.ask("release", request=request_id, **order).codes == ["E292"]


def test_an_unknown_request_is_said_to_be_unknown(served):
    reply = served.ask("job", request=ONE)
    assert (reply.status, reply.codes) == (422, ["E295"])


def test_under_add_remove_the_number_of_rows_is_in_no_answer(served, order):
    """317 rows: the number would show in progress, in a result, in a file name or in a chart."""
    rng = np.random.default_rng(0)
    lines = [f"{rng.integers(18, 90)},{rng.choice(['F', 'M'])},{rng.normal(60, 20):.1f}" for _ in range(317)]
    (served.folder / "some.csv").write_text("age,sex,income\n" + "\n".join(lines) + "\n")
    pc.Ledger.init(served.folder / "private.ledger", pc.PureDP(epsilon=1, neighbours="add-remove"))
    order |= {
        "data": "some.csv",
        "ledger": "private.ledger",
        "loss": {**order["loss"], "neighbours": "add-remove"},
    }
    seen = [served.ask("release", request=ONE, **order).body]
    served.finished(ONE)
    seen.append(served.ask("job", request=ONE).body)
    seen.append(served.ask("result", release="people.release.json").body)
    seen.append(served.ask("start").body)
    seen.append(served.ask("ledger", ledger="private.ledger").body)
    assert pc.load(served.folder / "people.release.json").rows is None
    for body in seen:
        assert b"317" not in body.replace(b".317", b"")


def test_progress_has_a_share_and_no_count(served):
    from privcov.web.releasing import Job

    job = Job(request=ONE, facts={"data": "", "ledger": "", "output": "", "loss": ""})
    job.progress(123_456, 50, 200)
    told = job.told()
    assert told["percent"] == 25
    assert "123456" not in json.dumps(told)


def test_a_new_ledger_can_be_opened_and_none_is_replaced(served):
    budget = {"kind": "approximate", "epsilon": "3", "delta": "0.000001", "neighbours": "replace-one"}
    opened = served.ask("ledger/open", name="new.ledger", budget=budget).json
    assert [amount["left"] for amount in opened["amounts"]] == ["3", "0.000001"]
    assert pc.Ledger.open(served.folder / "new.ledger").left["epsilon"] == 3
    assert served.ask("ledger/open", name="new.ledger", budget=budget).codes == ["E401"]
    assert served.ask("ledger/open", name="x.db", budget=budget).codes == ["E406"]
    assert served.ask("ledger/open", name="y.ledger", budget={**budget, "epsilon": ""}).errors.keys() == {
        "epsilon"
    }


def test_a_ledger_that_the_command_line_names_may_be_elsewhere(served, tmp_path_factory):
    place = tmp_path_factory.mktemp("ledgers") / "far.ledger"
    pc.Ledger.init(place, pc.PureDP(epsilon=7, neighbours="replace-one"))
    given = Given(ledger="far.ledger", ledger_place=str(place))
    other = type(served)(
        folder=served.folder, workbench=Workbench(directory=Directory.of(served.folder), given=given)
    )
    assert other.ask("ledger", ledger="far.ledger").json["amounts"][0]["left"] == "7"
    assert "far.ledger" in other.ask("start").json["files"]["ledgers"]
    assert served.ask("ledger", ledger="far.ledger").codes == ["E119"]
    other.workbench.close()


def test_with_a_key_releases_are_signed(served, order):
    pytest.importorskip("cryptography")
    key = keygen()
    other = type(served)(
        folder=served.folder, workbench=Workbench(directory=Directory.of(served.folder), key=key)
    )
    assert other.ask("start").json["signed"] == key.public.fingerprint
    other.ask("release", request=ONE, **order)
    assert other.finished(ONE)["state"] == "done"
    made = pc.load(served.folder / "people.release.json", signed_by=key.public)
    assert made.signer == key.public
    other.workbench.close()


@pytest.fixture
def released(served, order):
    """A directory with a release in it."""
    served.ask("release", request=ONE, **copy.deepcopy(order))
    assert served.finished(ONE)["state"] == "done"
    return served


def test_a_release_is_read_in_the_sections_of_the_report(released):
    told = released.ask("result", release="people.release.json").json
    assert [section["name"] for section in told["sections"]] == [
        "overview",
        "promise",
        "matrix",
        "spectrum",
        "columns",
    ]
    markup = "".join(section["body"] for section in told["sections"])
    assert markup.count("<svg") >= 3
    assert "<script" not in markup
    assert " style=" not in markup  # which the page's policy would refuse


def test_a_level_that_looks_like_markup_stays_text_everywhere(served, order, monkeypatch):
    monkeypatch.setattr(Simulator, "want", lambda self, tasks: None)  # nothing here waits for it
    order = copy.deepcopy(order)
    evil = "<img src=x onerror=alert(1)>"
    order["draft"]["columns"][1]["levels"] = f"F\n{evil}"
    served.ask("release", request=ONE, **order)
    assert served.finished(ONE)["state"] == "done"
    name = {"release": "people.release.json"}
    seen = json.dumps(served.ask("result", **name).json["sections"])
    seen += json.dumps(served.ask("fit", **name, formula="income ~ sex").json["section"])
    seen += served.ask("download", **name, what="report", formula="income ~ sex").body.decode()
    asked = {"word": "mean", "one": f"sex[{evil}]", "other": ""}
    plan = served.workbench.plan({**order, "rows": "300", **asked})
    seen += str(plan["chart"])
    assert "onerror" in seen
    assert "<img" not in seen


def test_a_regression_is_the_library_s(released):
    made = pc.load(released.folder / "people.release.json")
    told = released.ask("fit", release="people.release.json", formula="income ~ age").json
    assert told["summary"] == pc.ols(made, "income ~ age").summary()
    assert "<svg" in told["section"]["body"]
    reply = released.ask("fit", release="people.release.json", formula="income ~ shoe")
    assert reply.status == 422
    assert "shoe" in reply.errors["formula"]


def test_downloads_are_the_file_itself_and_a_report_on_it(released):
    reply = released.ask("download", release="people.release.json", what="release")
    assert reply.body == (released.folder / "people.release.json").read_bytes()
    assert reply.headers["content-disposition"] == 'attachment; filename="people.release.json"'
    reply = released.ask("download", release="people.release.json", what="report", formula="income ~ age")
    assert reply.body.startswith(b"<!DOCTYPE html>")
    assert b"income ~ age" in reply.body


@pytest.mark.parametrize("norm", ["1e999999999", "\x1b[2J"])
def test_a_release_whose_fields_lie_is_refused_at_once(released, norm):
    document = json.loads((released.folder / "people.release.json").read_text())
    document["certificate"]["row_norm_bound"] = norm
    inside = {word: value for word, value in document.items() if word not in ("format", "signature")}
    (released.folder / "evil.release.json").write_text(to_text(FORM.sealed(inside)))
    for what in ("result", "download"):
        reply = released.ask(what, release="evil.release.json")
        assert (reply.status, reply.codes) == (422, ["E601"])


@pytest.mark.parametrize("name", ["people.csv", "people.ledger", "../x.release.json", "", "no.release.json"])
def test_nothing_but_a_release_can_be_read_or_downloaded(released, name):
    (released.folder / "fake.release.json").write_text((released.folder / "people.csv").read_text())
    for what in ("result", "download"):
        assert released.ask(what, release=name).status == 422
        reply = released.ask(what, release="fake.release.json")
        assert reply.status == 422
        assert b"age,sex" not in reply.body


def test_what_a_worker_says_is_told_as_text_and_escaped(served, order, monkeypatch):
    """The page writes it with ``textContent``, so that markup is shown as it is; what cannot be seen is escaped."""

    def forging(*_):
        raise InputError("E120", "<img src=x onerror=alert(1)>\x1b[2J", "\u202egone")

    monkeypatch.setattr(Fragment, "open", forging)
    served.ask("release", request=ONE, **order)
    job = served.finished(ONE)
    assert job["state"] == "failed"
    assert job["error"] == {
        "code": "E120",
        "text": r"<img src=x onerror=alert(1)>\x1b[2J \u202egone",
    }
    reply = served.ask("job", request=ONE)
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_release_that_is_paid_for_comes_with_a_receipt(served, order):
    served.ask("release", request="a" * 32, **order)
    receipt = served.finished("a" * 32)["receipt"]
    written = (served.folder / "people.release.json").read_bytes()
    assert receipt == {
        "file": "people.release.json",
        "digest": hashlib.sha256(written).hexdigest(),
        "signed": "",
        "paid": "pure differential privacy, epsilon = 1, replace-one",
        "left": ["epsilon: 1 of 2"],
    }


def plan_of(served, question):
    """The plan, once what has to be simulated for the choice is known."""
    until(lambda: served.ask("plan", **question, word="frobenius").json["ready"])
    return served.ask("plan", **question, word="frobenius").json


def test_the_till_repeats_the_verdict_of_the_plan_and_offers_what_would_do(served, order):
    poor = {**order, "loss": {**order["loss"], "epsilon": "0.01"}, "rows": "300"}
    found = served.ask("quote", **poor).json
    planned = plan_of(served, poor)
    assert found["verdict"] == planned["verdict"] == "worse than publishing zeros"
    assert found["verdicts"] == planned["verdicts"]
    exits = " ".join(found["exits"])
    assert "Spend more: from ε = " in exits
    enough = exits.partition("from ε = ")[2].partition(" ")[0]
    better = served.ask("quote", **{**poor, "loss": {**order["loss"], "epsilon": enough}}).json
    assert better["verdict"] == "marginal"
    good = served.ask("quote", **{**order, "rows": "1,000,000"}).json
    assert good["verdict"] == "useful"
    assert good["exits"] == []
    assert served.spent == "0"


def test_every_exit_of_the_till_was_tried(served, order):
    columns = [
        {"name": f"c{i}", "kind": "numeric", "lower": "0", "upper": "1", "use": True} for i in range(30)
    ]
    wide = {
        **order,
        "draft": {"columns": columns},
        "loss": {**order["loss"], "epsilon": "1"},
        "rows": "6000",
    }
    found = served.ask("quote", **wide).json
    assert found["verdict"] == "worse than publishing zeros"
    kinds = [one.partition(":")[0] for one in found["exits"]]
    assert kinds == [
        "Fit a private frame first (frame",
        "Allow a δ of 0.000001",
        "Release fewer columns",
        "Spend more",
    ]
    count = int(re.search(r"the first (\d+) of 30", found["exits"][2])[1])
    verdicts = [
        served.ask("quote", **{**wide, "draft": {"columns": columns[:some]}}).json["verdict"]
        for some in (count, count + 1)
    ]
    assert verdicts == ["marginal", "worse than publishing zeros"]


def test_the_till_and_the_plan_name_the_same_ways_out(served, order):
    poor = {**order, "loss": {**order["loss"], "epsilon": "0.1"}, "rows": "300"}
    asked = {
        "rows": 300,
        "loss": pc.PureDP(epsilon="0.1", neighbours="replace-one"),
        "mechanisms": ["laplace"],
    }
    schema = pc.Schema.read(served.folder / "people.toml")
    assert served.ask("quote", **poor).json["exits"] == [*pc.plan(schema=schema, **asked).exits] != []


def test_strata_in_a_private_frame_are_offered_quoted_and_released(served, order):
    """Drowned as declared, where columns may be narrow, and not in a frame."""
    wide = {**order, "by": "sex", "rows": "2000", "loss": {**order["loss"], "epsilon": "0.25"}}
    found = served.ask("quote", **wide).json
    assert found["verdict"] == "worse than publishing zeros"
    assert any(one.startswith("Fit a private frame first (frame: auto)") for one in found["exits"])
    assert "in a private frame" in served.ask("quote", **wide, frame="auto").json["verdicts"]
    assert not any("frame" in one for one in served.ask("quote", **wide, share="0.3").json["exits"])
    framed = {**order, "by": "sex", "frame": "scales", "rows": "300"}
    quoted, planned = served.ask("quote", **framed).json, plan_of(served, framed)
    assert planned["verdicts"] == quoted["verdicts"]
    served.ask("release", request="b" * 32, **framed)
    assert served.finished("b" * 32)["state"] == "done"
    made = pc.load_strata(served.folder / "people.release.json")
    assert [one.name for one in made.certificate.rounds][-1] == "radius"


def test_a_private_frame_and_a_focus_are_quoted_planned_and_released(served, order):
    framed = {**order, "frame": "scales", "focus": "income ~ age", "rows": "300"}
    quoted = served.ask("quote", **framed).json
    assert "A private frame would be fitted first: at most" in quoted["frame"]
    assert quoted["price"] == "epsilon 1"
    planned = plan_of(served, framed)
    assert "in a private frame" in planned["verdicts"]
    assert planned["verdicts"] == quoted["verdicts"]
    assert "With --frame auto" in planned["frames"]
    served.ask("release", request="a" * 32, **framed)
    assert served.finished("a" * 32)["state"] == "done"
    made = pc.load(served.folder / "people.release.json").certificate
    assert [one.name for one in made.rounds][-2:] == ["radius", "means"]
    counted = {**framed, "cut": "counted"}
    assert "With --frame auto --cut counted" in plan_of(served, counted)["frames"]
    served.ask("release", request="b" * 32, **{**counted, "output": "counted.release.json"})
    assert served.finished("b" * 32)["state"] == "done"
    assert pc.load(served.folder / "counted.release.json").certificate.options["cut"] == "counted"
    # In the declared frame nothing is cut, and what the field says has no effect.
    assert served.ask("quote", **{**order, "cut": "counted"}).json["frame"] == ""
    assert served.ask("quote", **{**framed, "cut": "some"}).errors == {
        "frame": "cut must be told or counted, got some."
    }
    assert served.ask("quote", **{**order, "frame": "golden"}).errors == {
        "frame": "frame must be auto, declared, scales or shape, got 'golden'."
    }
    assert (
        "which the schema does not have" in served.ask("plan", **{**framed, "focus": "shoe"}).errors["focus"]
    )


def test_a_section_can_be_read_before_the_others_are_computed(released):
    whole = released.ask("result", release="people.release.json").json["sections"]
    for section in whole:
        found = released.ask("result", release="people.release.json", section=section["name"]).json
        assert found["sections"] == [section]
