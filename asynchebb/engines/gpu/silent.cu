// Neurons that are silent for some steps, and need not be followed: they stay so.

// What is shown; so many steps were before it. From where few neurons can no longer be run apart: may it be tried `again` at
// once, or after how many steps of all neurons. All that lives in shared memory, since registers would be saved elsewhere,
// far away, whenever a function is called.
struct Shown {
    const real* x;
    long long hold_start;
    int spell;
    bool again;
};

// May this silent neuron sleep from step k up to `end`? Not if it moves by itself, nor if its gate opens before the
// hold's last step. If it opens at that one, as with a discrete schedule, it OPENS.
DEVICE bool may_sleep(Net& net, real u, real a, long long c, int k, int end, bool& opens) {
    real still, unused;
    step(net.dynamics, u, 0, 0, 0, 0, still, unused, unused, unused);
    opens = false;
    if (still != u) return false;
    int opening = silent_gates(net, c, k, end).opens;
    if (opening == end || stays(net, a)) return true;
    opens = true;
    return opening == net.hold - 1;
}

// Has a silent neuron's row to be rectified when its gate opens?
DEVICE bool odd_when_silent(Net& net, real a, real scale, real s) {
    Terms terms = terms_of_update(net.rule, 0, a);
    return odd_W(terms, scale) || odd_M(net.floor, terms, s);
}

// Write down the gates of a neuron that has been silent from step `start` up to k, before its c is brought up to date.
OUTLINED void trace_silence(Net& net, const Shown& shown, int i, int start, int k) {
    long long c = COUNT(C)[i];
    if (k <= net.quiet) return;  // its gate was closed
    ROLLED for (; start < k; start++) {
        real beta;
        long long next;
        gate(net.schedule, 0, 0, c, start, net.hold, beta, next);
        c = next;
        if (beta != 0) global(net.trace_burst)[(shown.hold_start + start) * net.n + i] = 1;
    }
}

// Its u after so much drive; and is it active then?
DEVICE real moved(const real* dynamics, real u, real drive) {
    real new_u, new_y, unused;
    step(dynamics, u, 0, 0, drive, 0, new_u, new_y, unused, unused);
    return new_u;
}

DEVICE bool might_wake(const real* dynamics, real u, real drive) {
    real new_u, new_y, unused;
    step(dynamics, u, 0, 0, drive, 0, new_u, new_y, unused, unused);
    return !(new_y <= 0);
}
