// Idle rows: looked after now and then.

// Move the idle neurons to step k; and say what each of them feels at least from there on, if it LOOKS: `felt`, up to then what
// it felt of columns that are gone.
template <bool LOOKS> OUTLINED void move_idle(int k) {
    HERE;
    const int AT_ONCE = 16;
    int steps = k - res.looked, columns = res.columns, pitch = res.pitch;
    if (!LOOKS) sync();  // else the block has just met, and will
    if (net.trace_burst)
        for EACH(j, res.rows - THREADS) trace_silence(net, res.shown, res.id[THREADS + j], res.looked, k);
    if (steps || LOOKS)
        ROLLED for EACH(j, res.rows - THREADS) {
            real felt[4] = {res.felt[j], 0, 0, 0}, least[4] = {0, 0, 0, 0};
            int i = res.id[THREADS + j];
            const real* column = idle_weights(res) + j;
            ROLLED for (int first = 0; first < columns; first += AT_ONCE, column += AT_ONCE * pitch) {
                real weights[AT_ONCE];
                Four acts[AT_ONCE / 4], floors[AT_ONCE / 4];  // past the last column nothing acts
                UNROLL for (int q = 0; q < AT_ONCE; q++) weights[q] = one_at_once(column + q * pitch);
                UNROLL for (int q = 0; q < AT_ONCE / 4; q++) {
                    acts[q] = at_once((const Four*)(res.acts + first) + q);
                    if (LOOKS) floors[q] = at_once((const Four*)(res.y + FLOORS + first) + q);
                }
                UNROLL for (int q = 0; q < AT_ONCE; q++) {
                    felt[q % 4] = plus(weights[q], acts[q / 4].of[q % 4], felt[q % 4]);
                    if (LOOKS) least[q % 4] = plus(weights[q], floors[q / 4].of[q % 4], least[q % 4]);
                }
            }
            real all = (felt[0] + felt[1]) + (felt[2] + felt[3]);
            res.felt[j] = LOOKS ? (least[0] + least[1]) + (least[2] + least[3]) : (real)0;
            ROW(U)[i] = moved(res.dynamics, ROW(U)[i], (real)steps * ROW(B)[i] - ROW(S)[i] * all);
            COUNT(C)[i] = silent_gates(net, COUNT(C)[i], k - steps, k).c;
        }
    sync();
    for EACH(place, RATES) res.acts[place] = 0;
    if (THREAD == 0) res.looked = k;
    if (!LOOKS) sync();
}

// Look after the idle neurons at step k: give up to which step they stay silent, after those for whom that is not so have
// changed places with followed ones. Whose place each takes is said by `partner`; −1 if there are none. They feel at least
// what they would if each rate were at its floor; if one falls below that, they are looked after again. So nothing is ever
// undone. `least` is what this thread's followed neuron feels.
struct Looked {
    int steps, exchanged;
};

OUTLINED Looked look_after(int k, int end, real least) {
    HERE;
    move_idle<true>(k);
    int row = ROW_OF((int)THREAD), id = res.id[row], rows = res.rows, needed[LENGTHS], to_be_had[LENGTHS];
    // For which lengths might an idle neuron become active; for which does a followed one stay silent?
    auto unsafe_for = [&](int i, real felt) {
        unsigned unsafe = 0;
        real u = ROW(U)[i], drive = ROW(B)[i] - ROW(S)[i] * felt;
        UNROLL for (int l = 0; l < LENGTHS; l++) unsafe |= (unsigned)might_wake(res.dynamics, u, (real)LENGTH(l) * drive) << l;
        return unsafe;
    };
    bool opens, leaves = id >= 0 && ROW(Y)[id] == 0;
    if (leaves) leaves = may_sleep(net, ROW(U)[id], ROW(A)[id], COUNT(C)[id], k, end, opens) && !opens;
    unsigned safe = leaves ? ~unsafe_for(id, least) : 0, unsafe[PASSES + 1];
    UNROLL for (int l = 0; l < LENGTHS; l++) needed[l] = 0, to_be_had[l] = popcount(vote(safe >> l & 1));
    UNROLL for (int pass = 0; pass < PASSES; pass++) {
        int j = THREADS + pass * THREADS + (int)THREAD;
        unsafe[pass] = 0;
        if (THREADS + pass * THREADS >= rows) continue;
        if (j < rows) unsafe[pass] = unsafe_for(res.id[j], res.felt[j - THREADS]);
        if (j < rows) res.felt[j - THREADS] = 0;
        UNROLL for (int l = 0; l < LENGTHS; l++) needed[l] += popcount(vote(unsafe[pass] >> l & 1));
    }
    if (LANE == 0) UNROLL for (int l = 0; l < LENGTHS; l++) res.counts[WARP][l] = needed[l] << 16 | to_be_had[l];
    sync();
    UNROLL for (int l = 0; l < LENGTHS; l++) {
        int both = 0;
        UNROLL for (int w = 0; w < WARPS; w++) both += res.counts[w][l];
        needed[l] = both >> 16, to_be_had[l] = both & 0xFFFF;
    }
    int length = LENGTHS, exchanged = 0;
    UNROLL for (int l = LENGTHS - 1; l >= 0; l--)
        if (needed[l] <= to_be_had[l] && (length == LENGTHS || needed[l] <= FEW_EXCHANGED || needed[l] == exchanged))
            length = l, exchanged = needed[l];
    if (length == LENGTHS) return {0, 0};
    int steps = LENGTH(length) < end - k ? LENGTH(length) : end - k;
    res.partner[row] = -1;
    if (exchanged) {
        unsigned leaving = vote(safe >> length & 1);
        if (LANE == 0) res.unused[WARP] = leaving;
        UNROLL for (int pass = 0; pass < PASSES; pass++) {
            unsigned wanted = vote(unsafe[pass] >> length & 1);
            if (LANE == 0) res.wanted[pass * WARPS + WARP] = wanted;
        }
        sync();
        int before[1], place[PASSES + 1];
        count_bits<1>(res.unused, before);
        count_bits<PASSES>(res.wanted, place);
        UNROLL for (int pass = 0; pass < PASSES; pass++)
            if (unsafe[pass] >> length & 1) res.exchanging[place[pass]] = THREADS + pass * THREADS + (int)THREAD;
        sync();
        if (safe >> length & 1 && before[0] < exchanged) {
            int other = res.exchanging[before[0]], newcomer = res.id[other], column = res.column[id];
            res.partner[row] = other;
            res.id[row] = newcomer, res.id[other] = id, res.row[newcomer] = row, res.row[id] = other;
            unsigned char grown = res.grown[row];
            res.grown[row] = res.grown[other], res.grown[other] = grown;
            if (column >= 0) res.y[column] = res.y[RATES + column] = 0;  // no one else will write it
        }
    }
    sync();
    return {steps, exchanged};
}

// Followed rows and their partners change places.
template <int R> DEVICE void exchange(Near& res, int thread, Weights& m) {
    if constexpr (R < 4) {
        int partner = res.partner[TEAM_ROW_OF(thread, R)], columns = res.columns, pitch = res.pitch;
        if (partner >= 0) {
            real* idle = idle_weights(res) + 4 * MINE_OF(thread) * pitch + partner - THREADS;
            UNROLL for (int g = 0; g < MOST / GROUP; g++) {
                if (GROUP * g >= columns) break;
                real others[4];
                UNROLL for (int e = 0; e < 4; e++) others[e] = idle[(GROUP * g + e) * pitch];
                UNROLL for (int e = 0; e < 4; e++) {
                    real& here = weights_of(res, thread, m, g, e)[R];
                    idle[(GROUP * g + e) * pitch] = here, here = others[e];
                }
            }
        }
        exchange<R + 1>(res, thread, m);
    }
}
