"""The package's rooms: imports point downwards only, and a name stands for one thing."""

from collections import Counter

from modules import BEGIN, CONTRIBUTING, END, PACKAGE, cycle, described, graph, modules, reduced, rooms


def test_no_module_and_no_room_imports_another_in_a_circle_not_even_for_types():
    assert cycle(graph()) == [] and cycle(rooms(graph())) == []


def test_two_modules_of_one_name_do_the_same_job():
    names = Counter(name.rpartition(".")[2] for name in modules() if name)
    assert {name for name, count in names.items() if count > 1} == {"learn", "silence"}


def test_the_graph_in_contributing_is_that_of_the_package():
    text = CONTRIBUTING.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == described(PACKAGE), "run `make graph`"


def test_a_graph_is_drawn_without_arrows_that_follow_from_others():
    assert cycle({"a": {"b"}, "b": {"a"}}) in (["a", "b", "a"], ["b", "a", "b"])
    assert reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
    assert reduced({"a": {"b"}, "b": {"a", "c"}, "c": set()}) == {"a and b": {"c"}, "c": set()}
