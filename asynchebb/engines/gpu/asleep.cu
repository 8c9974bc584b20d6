// Neurons that sleep: silent ones that need not be run, since they stay silent.
//
// They are looked after between blocks of steps. From a floor under each rate follows a bound on the drive of each sleeper,
// and those that it does not keep silent for the length of the block are woken beforehand. The block ends when a rate falls
// below its floor, so that what is computed is exact, and never undone. Awake neurons that are silent, and will be for a
// while, fall asleep again.

// May this silent neuron sleep from step k up to `end`? Not if it moves by itself, nor if its gate opens before the
// hold's last step. If it opens at that one, as with a discrete schedule, it OPENS.
DEVICE bool may_sleep(Net& net, real u, real a, long long c, int k, int end, bool& opens) {
    real still, unused;
    step(net.dynamics, u, 0, 0, 0, 0, still, unused, unused, unused);
    opens = false;
    if (net.all_near || still != u) return false;
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

// The lengths of a block for which a sleeper might become active, if it feels at least so much; or if it is SHORT.
DEVICE unsigned unsafe_for(const real* dynamics, real u, real b, real felt, real felt_if_short) {
    unsigned unsafe = 0;
    UNROLL for (int l = 0; l < LENGTHS; l++) {
        real drive = b - (l < SHORT ? felt : felt_if_short);
        drive = drive <= 0 ? (real)0 : drive;
        unsafe |= (unsigned)might_wake(dynamics, u, (real)(LONGEST >> l) * drive) << l;
    }
    return unsafe;
}

// How many there are, by length.
DEVICE void count_unsafe(Counts& counts, unsigned unsafe) {
    UNROLL for (int l = 0; l < LENGTHS; l++) (l < 3 ? counts.first : counts.second) += (unsafe >> l & 1) << l % 3 * 10;
}

DEVICE void give_counts(Awake& res, Counts counts) {
    counts.first = sum_of_warp(counts.first), counts.second = sum_of_warp(counts.second);
    if (LANE == 0) res.counts[WARP] = counts;
    sync();
}

DEVICE int count_of(const Counts& counts, int length) {
    return (length < 3 ? counts.first : counts.second) >> length % 3 * 10 & 1023;
}

// *to(t) = *from(t) for t < count, several at a time. No one is both.
template <typename To, typename From> DEVICE void move_several(int count, To to, From from) {
    const int AT_ONCE = 4;
    ROLLED for (int first = 0; first < count; first += AT_ONCE) {
        decltype(to(0)) at[AT_ONCE];
        auto what = *from(first);
        decltype(what) numbers[AT_ONCE];
        UNROLL for (int t = 0; t < AT_ONCE; t++) {
            int one = first + t < count ? first + t : first;
            at[t] = to(one), numbers[t] = *from(one);
        }
        UNROLL for (int t = 0; t < AT_ONCE; t++) *at[t] = numbers[t];
    }
}
