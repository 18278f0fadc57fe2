"""The console in a browser, on both brokers: each page is walked, and what it does is looked at by
a stock client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat import brokers
from tests.compat import browser as browsers
from tests.compat.brokers import Broker
from tests.compat.browser import DOWN, ENTER, Browser, timed
from tests.compat.conftest import StartBroker

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

# Where pictures go, when somebody wants new ones.
PICTURES = os.environ.get("KAFKALITE_SCREENSHOTS")
START_SECONDS = 30
XSS = '<img src=x onerror="window.wounded=1"><script>window.wounded=1</script>'


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if why := browsers.missing():
        pytest.skip(why)
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def chromium(window: Browser) -> Browser:
    """Without what another test left in it."""
    window.open("about:blank")
    window.scheme("light")
    window.said()
    return window


@contextmanager
def console(bootstrap: str, folder: Path, *words: str) -> Iterator[str]:
    """Its address."""
    file = folder / "console-port"
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkalite", "console", "-b", bootstrap, "--listen", "127.0.0.1:0",
         "--port-file", str(file), *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while not file.exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"http://127.0.0.1:{file.read_text().strip()}"
    finally:
        process.terminate()
        said = process.communicate(timeout=20)[0]
        file.unlink(missing_ok=True)
        assert "Traceback" not in said, said


@pytest.fixture
def page(broker: Broker, chromium: Browser, tmp_path: Path) -> Iterator[str]:
    with console(broker.bootstrap, tmp_path, "--allow-changes") as address:
        yield address
        assert chromium.said() == []
        assert [each for each in chromium.asked() if not each.startswith(address)] == []


def well_made(browser: Browser, name: str, schemes: tuple[str, ...] = ("light", "dark")) -> None:
    """Looks at what is shown, in both schemes."""
    for scheme in schemes:
        browser.scheme(scheme)
        time.sleep(0.2)  # colours change softly
        assert browser.mistakes() == [], (name, scheme)
        if PICTURES:
            browser.screenshot(Path(PICTURES) / f"{name}-{scheme}.png")
    browser.scheme("light")


def at(browser: Browser, address: str, place: str) -> None:
    browser.open("about:blank")
    browser.open(f"{address}/#/{place}")


def topic_with(broker: Broker, name: str, partitions: int, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(60)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    cities = ("Köln", "Zürich", "Reykjavík", "Łódź", "Genève")
    for number in range(count):
        value = {
            "order": 10_000 + number, "city": cities[number % 5], "paid": number % 3 == 0,
            "total": round(number * 7.3 % 400, 2), "items": [{"sku": f"A-{number % 97}"}],
        }  # fmt: skip
        producer.produce(
            name, json.dumps(value, ensure_ascii=False), f"customer-{number % 41}",
            headers={"trace": f"{number:08x}"},
        )
        producer.poll(0)
    producer.flush(60)


def commit(broker: Broker, group: str, topic: str, partitions: int, offset: int) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group}
    consumer = Consumer(settings)
    places = [TopicPartition(topic, index, offset) for index in range(partitions)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def committed(broker: Broker, group: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    return {each.partition: each.offset for each in asked[group].result(20).topic_partitions}


def eventually(condition: Callable[[], bool], patience_s: float = 30) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


# --- the walk -------------------------------------------------------------------------------------


def test_a_topic_from_its_beginning_to_its_end(
    broker: Broker, chromium: Browser, page: str, topic: str
) -> None:
    """Created, written to with markup in every field, read, filtered, followed, deleted."""
    at(chromium, page, "topics")
    chromium.click("Create a topic")
    chromium.write("Name", topic, "dialog")
    chromium.write("Partitions", "2", "dialog")
    chromium.write("Settings, KEY=VALUE, one a line", "retention.ms=86400000", "dialog")
    assert chromium.mistakes() == []
    chromium.click("Create", "button", "dialog")
    chromium.sees(f"Topic {topic} is created")
    chromium.write("Search topics", topic)
    chromium.until("document.querySelectorAll('tr.row').length === 1")
    chromium.run("document.querySelector('tr.row').focus()")
    chromium.keys(ENTER)
    chromium.sees("There are no records here")
    chromium.click("Write a record")
    chromium.write("Key", XSS, "dialog")
    chromium.write("Value", XSS, "dialog")
    chromium.write("Headers, NAME=VALUE, one a line", f"{XSS[:20]}={XSS}", "dialog")
    chromium.click("Write", "button", "dialog")
    chromium.sees(XSS, "table")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in (b"caf\xe9 \xff", b"x" * 900_000, None, b'{"n": 12345678901234567890}'):
        producer.produce(topic, value, b"plain", 1)
    assert producer.flush(20) == 0
    chromium.write("Filter", "key:plain")
    chromium.keys(ENTER)
    chromium.until("document.querySelectorAll('tr.row').length === 4")
    chromium.sees("0x636166e920ff", "table")
    chromium.write("Filter", "n=12345678901234567890")
    chromium.keys(ENTER)
    chromium.until("document.querySelectorAll('tr.row').length === 1")
    chromium.run("document.querySelector('tr.row').focus()")
    chromium.keys(ENTER)
    chromium.sees("12345678901234567890", "aside")
    chromium.write("Filter", "")
    chromium.write("From", "beginning")
    chromium.click("Read")
    chromium.until("document.querySelectorAll('tr.row').length === 5")
    chromium.click("Follow")
    chromium.sees("Following")
    producer.produce(topic, b"it came while somebody looked", partition=0)
    assert producer.flush(20) == 0
    chromium.sees("it came while somebody looked", "table")
    chromium.click("Stop following")
    assert not chromium.run("return window.wounded")
    chromium.click("Settings", ".tabs a")
    chromium.sees("86400000", "table")
    chromium.sees("topic", "table")
    chromium.click("Delete")
    chromium.write("Type its name to delete it", topic, "dialog")
    chromium.click("Delete", "button", "dialog")
    chromium.sees(f"The topic {topic} is deleted")
    eventually(lambda: topic not in AdminClient(
        {"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics)  # fmt: skip


@pytest.fixture
def used(start_broker: StartBroker) -> Iterator[Broker]:
    """A broker with what there is in one that is used: topics, groups, a member, a transaction."""
    broker = start_broker()
    sizes = (("orders", 6, 4_000), ("payments", 3, 900), ("shipments", 12, 70),
             ("customers", 1, 300), ("clicks", 24, 9_000))  # fmt: skip
    for name, partitions, count in sizes:
        topic_with(broker, name, partitions, count)
    commit(broker, "billing", "orders", 6, 400)
    commit(broker, "reports", "clicks", 24, 20)
    settings = {"bootstrap.servers": broker.bootstrap, "client.id": "packer-1"}
    member = Consumer({**settings, "group.id": "packing", "auto.offset.reset": "earliest"})
    member.subscribe(["shipments"])
    eventually(lambda: member.poll(0.2) is not None)
    producer = Producer({**settings, "transactional.id": "till-7"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("payments", b"under way", partition=0)
    producer.flush(20)
    yield broker
    producer.abort_transaction(20)
    member.close()


def test_every_page(used: Broker, chromium: Browser, tmp_path: Path) -> None:
    with console(used.bootstrap, tmp_path, "--allow-changes") as page:
        walk(chromium, page)
        assert chromium.said() == []


def walk(chromium: Browser, page: str) -> None:
    at(chromium, page, "topics")
    chromium.until("document.querySelector('tr.row')?.innerText.match(/\\t0$|\\/s/)")
    well_made(chromium, "topics")
    at(chromium, page, "topic/orders")
    chromium.until("document.querySelectorAll('tr.row').length > 10")
    chromium.run("document.querySelector('tr.row').click()")
    chromium.sees("customer-", "aside")
    chromium.until("document.querySelector('aside pre .n')")
    well_made(chromium, "records")
    for part, text in (("partitions", "Size of the leaders"), ("groups", "billing"),
                       ("settings", "Also defaults")):  # fmt: skip
        at(chromium, page, f"topic/orders/{part}")
        chromium.sees(text)
        well_made(chromium, part)
    for place, text in (
        ("groups", "billing"), ("group/packing", "packer-1"), ("transactions", "payments-0"),
        ("brokers", "controller"), ("broker/1", "in service"), ("quotas", "There are no quotas"),
        ("access", "no authorizer"),
    ):  # fmt: skip
        at(chromium, page, place)
        chromium.sees(text)
        chromium.until("!document.querySelector('p.error')")
        well_made(chromium, place.partition("/")[0])


def test_a_group_is_reset_after_a_preview(
    broker: Broker, chromium: Browser, page: str, topic: str
) -> None:
    topic_with(broker, topic, 2, 50)
    group = f"{topic}/ö %"  # needs care in an address
    commit(broker, group, topic, 2, 5)
    at(chromium, page, "groups")
    chromium.write("Search groups", group)
    chromium.click(group, "a")
    chromium.sees(topic, "table")
    chromium.click("Reset…")
    chromium.write("To", "beginning", "dialog")
    chromium.click("Preview", "button", "dialog")
    chromium.sees("This is where it would go on", "dialog")
    well_made(chromium, "reset", ("light",))
    assert committed(broker, group) == {0: 5, 1: 5}
    chromium.click("Reset", "button", "dialog")
    chromium.sees("is reset")
    assert committed(broker, group) == {0: 0, 1: 0}
    chromium.sees("50", ".facts")


def test_keys_alone(broker: Broker, chromium: Browser, page: str, topic: str) -> None:
    topic_with(broker, topic, 1, 3)
    at(chromium, page, "groups")
    chromium.until("document.querySelector('main h1')?.innerText === 'Groups'")
    chromium.keys("g", "t")
    chromium.until("document.querySelectorAll('tr.row').length > 0")
    chromium.keys("/")
    chromium.keys(*topic)
    chromium.until("document.querySelectorAll('tr.row').length === 1")
    chromium.keys("\ue004")  # Tab, past the heads of columns
    chromium.until("document.activeElement !== document.body")
    chromium.run("document.querySelector('tr.row').focus()")
    chromium.keys(ENTER)
    chromium.sees("customer-")
    chromium.run("document.querySelector('tr.row').focus()")
    chromium.keys(DOWN, DOWN)
    assert chromium.run("return document.activeElement.ariaRowIndex") == "4"
    chromium.keys("?")
    chromium.sees("another row", "dialog")
    assert chromium.mistakes() == []


def test_a_login_and_its_end(chromium: Browser, tmp_path: Path) -> None:
    """At the console of a broker's own, which has TLS, users and rules."""
    file = tmp_path / "port"
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkalite", "serve", "--secure", "--listen", "127.0.0.1:0",
         "--data-dir", str(tmp_path / "data"), "--topic", "orders", "--console", "127.0.0.1:0",
         "--console-port-file", str(file), "--port-file", str(tmp_path / "serves")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        eventually((tmp_path / "serves").exists)
        at(chromium, f"http://127.0.0.1:{file.read_text().strip()}", "topics")
        chromium.sees("Log in")
        chromium.write("Name", "admin")
        chromium.write("Password", "wrong")
        chromium.click("Log in", "button")
        chromium.sees("do not let admin in", ".error")
        well_made(chromium, "login")
        password = (tmp_path / "data.secure" / "admin.password").read_text().strip()
        chromium.write("Password", password)
        chromium.click("Log in", "button")
        chromium.sees("orders", "table")
        assert chromium.run("return document.cookie") == ""
        chromium.click("Clients", "nav a")
        chromium.sees("User:admin", "table")
        well_made(chromium, "clients")
        chromium.click("Access", "nav a")
        chromium.sees("There are no rules")
        chromium.click("Log out")
        chromium.sees("With a name and a password")
        assert chromium.said() == []
    finally:
        process.terminate()
        process.wait(20)


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_topic_that_goes_away_while_it_is_looked_at(
    broker: Broker, chromium: Browser, page: str, topic: str
) -> None:
    topic_with(broker, topic, 1, 3)
    at(chromium, page, f"topic/{topic}/partitions")
    chromium.sees("Size of the leaders")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(20)
    chromium.sees(f"There is no topic {topic}")
    at(chromium, page, f"topic/{topic}")
    chromium.sees("The topic is not there any more")
    chromium.said()


def test_a_broker_that_goes_and_comes_back(
    start_broker: StartBroker, chromium: Browser, tmp_path: Path
) -> None:
    broker = start_broker()
    topic_with(broker, "orders", 1, 3)
    with console(broker.bootstrap, tmp_path) as address:
        at(chromium, address, "topics")
        chromium.sees("orders", "table")
        assert chromium.run("return document.body.innerText.includes('read-only')")
        broker.stop()
        chromium.sees("Trying again", "#banner")
        well_made(chromium, "gone")
        start_broker(folder=broker.folder, port=broker.port)
        chromium.until("document.querySelector('#banner').hidden")
        chromium.sees("orders", "table")
        chromium.said()


def partitions_with_leaders(admin: AdminClient) -> int:
    found = admin.list_topics(timeout=30).topics.values()
    return sum(each.leader >= 0 for topic in found for each in topic.partitions.values())


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Broker]:
    """kafkalite: Apache Kafka takes minutes to make so many with the memory that tests give it."""
    broker = brokers.start(brokers.KAFKALITE, tmp_path / "many")
    yield broker
    broker.stop()


def test_10_000_partitions_are_listed_in_a_second(
    many: Broker, chromium: Browser, tmp_path: Path
) -> None:
    broker = many
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for name in [f"many-{number:02}" for number in range(10)]:
        admin.create_topics([NewTopic(name, 1_000, 1)])[name].result(120)
    eventually(lambda: partitions_with_leaders(admin) == 10_000, 240)
    with console(broker.bootstrap, tmp_path) as address:
        at(chromium, address, "groups")
        chromium.sees("Groups")
        taken = []
        for _ in range(3):
            chromium.run("location.hash = '#/groups'")
            chromium.sees("There are no groups")
            chromium.run(
                "window.began = performance.now(); window.took = null;"
                "const look = () => { if (document.querySelector('main').innerText.includes("
                "'10 topics, 10,000 partitions')) window.took = performance.now() - window.began;"
                "else requestAnimationFrame(look); }; requestAnimationFrame(look);"
                "location.hash = '#/topics'"
            )
            taken.append(float(chromium.until("window.took")))
        print(f"{broker.kind}: 10,000 partitions listed in {taken} ms")
        assert min(taken) < 1_000
        whole = timed(lambda: chromium.until("document.querySelector('main').dataset.ready === "
                                             "'numbers'"))  # fmt: skip
        print(f"{broker.kind}: their numbers {whole:.1f} s later")
        admin.create_topics([NewTopic("wide", 9_000, 1)])["wide"].result(300)
        eventually(lambda: partitions_with_leaders(admin) == 19_000, 240)
        at(chromium, address, "topic/wide/partitions")
        chromium.sees("9,000")
        assert chromium.run("return document.querySelectorAll('tr').length") < 100
        chromium.until("document.querySelectorAll('tr.row').length > 5")
        chromium.run("document.querySelector('tr.row').focus()")
        chromium.keys(browsers.END)
        chromium.until(
            "[...document.querySelectorAll('tr.row')].at(-1)?.innerText.startsWith('8999')"
        )
        assert chromium.said() == []
