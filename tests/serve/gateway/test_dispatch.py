"""The queue of a version under every order of events: nothing is lost, nothing ends twice, the old ones go first."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from pliant.serve.gateway.dispatch import MAX_RETRIES, Dispatch, DispatchedRequest, DispatchState, KernelRoom

_MAX_QUEUE = 6


class DispatchMachine(RuleBasedStateMachine):
    """Keeps its own book of what became of each request, and compares."""

    kernels: Bundle[KernelRoom] = Bundle("kernels")
    requests: Bundle[DispatchedRequest] = Bundle("requests")

    def __init__(self) -> None:
        super().__init__()
        self.dispatch: Dispatch[DispatchedRequest] = Dispatch(_MAX_QUEUE)
        self.number = 0
        self.live: dict[int, DispatchedRequest] = {}
        self.ended: set[int] = set()
        self.rooms: list[KernelRoom] = []
        self.gone: set[KernelRoom] = set()

    def end(self, *requests: DispatchedRequest) -> None:
        for request in requests:
            assert request.number not in self.ended, "ended twice"
            assert request.state is DispatchState.OVER
            self.ended.add(request.number)
            del self.live[request.number]

    @rule(target=requests)
    def arrive(self):  # type: ignore[no-untyped-def]
        self.number += 1
        request = DispatchedRequest(self.number)
        was_full = self.dispatch.num_queued >= _MAX_QUEUE
        assert self.dispatch.queue(request) is not was_full
        if was_full:
            return multiple()
        self.live[request.number] = request
        return request

    @rule(target=kernels, num_credits=st.integers(1, 4))
    def connect(self, num_credits: int) -> KernelRoom:
        room = KernelRoom(num_credits)
        self.rooms.append(room)
        self.dispatch.open(room)
        return room

    @rule()
    def assign(self) -> None:
        waiting = [one.number for one in self.dispatch.waiting()]
        before = {room: len(room) for room in self.rooms}
        given = list(self.dispatch.assign())
        assert [request.number for _, request in given] == waiting[: len(given)], "the oldest go first"
        for room, request in given:
            assert room.accepts
            assert room.held[request.number] is request
            free = [one for one in self.rooms if one.accepts and before[one] < one.credits]
            assert before[room] == min(before[one] for one in free), "the one that holds fewest goes first"
            before[room] += 1
        assert not self.dispatch.num_queued or not any(room.has_room for room in self.rooms), "nobody waits in vain"

    @rule(room=kernels, data=st.data())
    def answer(self, room: KernelRoom, data: st.DataObject) -> None:
        if room in self.gone:
            return
        number = data.draw(st.sampled_from([*room.held, *room.abandoned, 10_000]))
        waited_for = room.held.get(number)
        before = len(room)
        request = self.dispatch.finish(room, number)
        assert request is waited_for
        assert len(room) == before - (number != 10_000)
        if request is not None:
            self.end(request)

    @rule(room=kernels, data=st.data())
    def begin_stream(self, room: KernelRoom, data: st.DataObject) -> None:
        if room.held:
            room.held[data.draw(st.sampled_from([*room.held]))].has_begun = True

    @rule(room=kernels, data=st.data())
    def give_back(self, room: KernelRoom, data: st.DataObject) -> None:
        if room in self.gone:
            return
        numbers = data.draw(st.lists(st.sampled_from([*room.held, *room.abandoned, 10_000]), unique=True))
        begun = {number for number in numbers if number in room.held and room.held[number].has_begun}
        failed = self.dispatch.give_back(room, numbers)
        assert {request.number for request in failed} == begun
        assert not (room.held.keys() | room.abandoned) & set(numbers)
        self.end(*failed)

    @rule(room=kernels)
    def drain(self, room: KernelRoom) -> None:
        if room not in self.gone:
            self.dispatch.close(room)

    @rule(room=kernels)
    def open_again(self, room: KernelRoom) -> None:
        if room not in self.gone:
            self.dispatch.open(room)

    @rule(room=kernels, num_credits=st.integers(1, 4))
    def change_credits(self, room: KernelRoom, num_credits: int) -> None:
        if room not in self.gone and num_credits >= len(room):
            self.dispatch.set_credits(room, num_credits)

    @rule(room=consumes(kernels), retry=st.booleans())
    def lose(self, room: KernelRoom, retry: bool) -> None:
        held = {number: request.num_retries for number, request in room.held.items()}
        begun = {number for number, request in room.held.items() if request.has_begun}
        failed = {request.number: request for request in self.dispatch.lose(room, retry=retry)}
        self.gone.add(room)
        self.end(*failed.values())
        may_retry = {number for number, num in held.items() if retry and num < MAX_RETRIES and number not in begun}
        assert failed.keys() == held.keys() - may_retry
        for number in may_retry:
            assert self.live[number].state is DispatchState.WAITING
            assert self.live[number].num_retries == held[number] + 1

    @rule(request=consumes(requests))
    def cancel(self, request: DispatchedRequest) -> None:
        if request.number not in self.live:
            return
        room = request.room
        assert self.dispatch.cancel(request) is room
        assert room is None or request.number in room.abandoned
        self.end(request)

    @rule(room=kernels)
    def forget(self, room: KernelRoom) -> None:
        if room not in self.gone:
            self.dispatch.forget(room, set(room.abandoned))
            assert not room.abandoned

    @rule()
    def move(self) -> None:
        waiting = list(self.dispatch.waiting())
        released = self.dispatch.release()
        assert released == waiting
        assert not self.dispatch.num_queued
        self.dispatch.adopt(released)

    @invariant()
    def everything_is_somewhere_once(self) -> None:
        waiting = [request.number for request in self.dispatch.waiting()]
        held = [number for room in self.rooms for number in room.held]
        assert sorted(waiting + held) == sorted(self.live), "lost, or there twice"
        assert waiting == sorted(waiting), "in the order of arrival"
        assert all(room.held[number].room is room for room in self.rooms for number in room.held)

    @invariant()
    def numbers_are_right(self) -> None:
        assert self.dispatch.num_queued == len(list(self.dispatch.waiting()))
        assert self.dispatch.num_held == sum(map(len, self.rooms))
        assert self.dispatch.num_ready == sum(room.accepts for room in self.rooms)
        assert all(len(room) <= room.credits for room in self.rooms), "no more than its credits"


TestDispatchMachine = DispatchMachine.TestCase
TestDispatchMachine.settings = settings(max_examples=60, stateful_step_count=40)


def test_a_request_that_has_ended_cannot_end_again() -> None:
    dispatch: Dispatch[DispatchedRequest] = Dispatch(1)
    request = DispatchedRequest(1)
    dispatch.queue(request)
    dispatch.cancel(request)

    with pytest.raises(AssertionError):
        dispatch.cancel(request)


def test_fewer_credits_than_a_kernel_holds_give_it_nothing_until_it_has_answered() -> None:
    dispatch: Dispatch[DispatchedRequest] = Dispatch(9)
    room = KernelRoom(3)
    dispatch.open(room)
    for number in range(4):
        dispatch.queue(DispatchedRequest(number))
    list(dispatch.assign())

    dispatch.set_credits(room, 2)
    dispatch.finish(room, 0)
    assert list(dispatch.assign()) == []
    dispatch.finish(room, 1)

    assert [request.number for _, request in dispatch.assign()] == [3]
