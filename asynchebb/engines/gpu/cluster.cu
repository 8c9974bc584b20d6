// Networks of which many neurons are active: a cluster of blocks has one, with all of M in their shared memory.
//
// Each block has ROWS consecutive neurons, a lane each, and their rows of M, by column; all columns stay there for the
// whole call. At each step a block goes through the columns of the active neurons (`pass`), of which it has lists, one
// from each block; every warp then takes the step of all of the block's neurons, the same in each, so that nothing has to
// be told within the block; and the warps write the new list into all blocks of the cluster (`publish`).
//
// There are two sets of lists, which take turns, and one meeting of the cluster per step. At step k a block reads one set
// before the meeting, while others may already write the other one. They read that at step k − 1, before the last
// meeting, and everyone has come from there: so no list is written while it is read, nor read before it is complete.
//
// All warps agree on what their votes say of the block's neurons, so that a whole block takes the same branch.

#define QUARTER ((int)THREAD / 8)          // eight lanes have the rows of a column, four each
#define QUARTERS (THREADS / 8)
#define SHARING (QUARTERS / CLUSTER)       // quarters of warps that share a list
#define RANKS ((CLUSTER + WARPS - 1) / WARPS)  // blocks that a warp writes to
#define OWN_FOUR (LANE % 8)                // of the rows

struct alignas(2 * sizeof(real)) Rate {
    int column;  // how many bytes before it
    real y;
};
struct alignas(16) List {  // of a block's active neurons
    Rate rates[ROWS];
    unsigned active;  // a bit for each
};

struct Cluster {  // in the shared memory of each block
    Net net;
    real rule[RULE_CONSTANTS];
    List lists[2][CLUSTER];
    real part[WARPS][ROWS];  // what each warp has found of each row
    real b[ROWS];
    Four slice[CLUSTER * ROWS * ROWS / 4];  // these rows of M̂, by column
};
SIZE(shared_bytes, sizeof(Cluster));

struct Own {  // of a lane's neuron, the same in all warps
    real u, y, a, b, s, scale, shift;
    real gain;  // by how much its row is still to grow, per rate
    long long c;
    bool exists, grown;
};

// A number of each of the four rows of this lane, from those who have them.
DEVICE Four of_four(real x) {
    Four found;
    UNROLL for (int e = 0; e < 4; e++) found.of[e] = shuffle(x, 4 * OWN_FOUR + e);
    return found;
}

DEVICE bool are(const Four& four, real x) {
    return four.of[0] == x && four.of[1] == x && four.of[2] == x && four.of[3] == x;
}

DEVICE Four* four_of(Cluster& memory, int column) { return memory.slice + column * (ROWS / 4) + OWN_FOUR; }

// Σ_j m̂_ij y_j over some of the active j, for the four rows of this lane. Where rows GROW, M̂ += gains yᵀ before that.
template <bool GROW> DEVICE Four pass(Cluster& memory, const List* lists, real gain) {
    const int EACH_HAS = ROWS / SHARING, AT_ONCE = EACH_HAS < 4 ? EACH_HAS : 4;
    const List& list = lists[QUARTER / SHARING];
    char* slice = (char*)memory.slice + OWN_FOUR * sizeof(Four);
    Four sum = {0, 0, 0, 0}, gains;
    if (GROW) gains = of_four(gain);
    bool grows = GROW && !are(gains, 0);
    int count = popcount(list.active), first = QUARTER % SHARING;
    ROLLED do {  // the first rates are asked for before it is known how many there are
        Rate rates[AT_ONCE];
        Four weights[AT_ONCE];
        UNROLL for (int j = 0; j < AT_ONCE; j++) read_rate(rates[j].column, rates[j].y, &list.rates[first + j * SHARING]);
        UNROLL for (int j = 0; j < AT_ONCE; j++) {
            bool is_in = first + j * SHARING < count;
            weights[j] = {0, 0, 0, 0};
            read_shared_if(is_in, weights[j].of, (const real*)(slice + rates[j].column));
            rates[j].y = is_in ? rates[j].y : (real)0;
        }
        if (grows)
            UNROLL for (int j = 0; j < AT_ONCE; j++)
                if (first + j * SHARING < count) {
                    UNROLL for (int e = 0; e < 4; e++) weights[j].of[e] = plus(gains.of[e], rates[j].y, weights[j].of[e]);
                    *(Four*)(slice + rates[j].column) = weights[j];
                }
        UNROLL for (int j = 0; j < AT_ONCE; j++)
            UNROLL for (int e = 0; e < 4; e++) sum.of[e] = plus(weights[j].of[e], rates[j].y, sum.of[e]);
    } while ((first += AT_ONCE * SHARING) < count);
    return sum;
}

// What all lanes have found of their four rows, combined: that of this lane's neuron.
template <typename Combine> DEVICE real over_block(Cluster& memory, const Four& part, Combine combine) {
    // Each gives away what belongs to the others: two of four, then one of two.
    bool odd = LANE & 8, high = LANE & 16;
    real first = combine(odd ? part.of[1] : part.of[0], shuffle_xor(odd ? part.of[0] : part.of[1], 8));
    real second = combine(odd ? part.of[3] : part.of[2], shuffle_xor(odd ? part.of[2] : part.of[3], 8));
    memory.part[WARP][4 * OWN_FOUR + LANE / 8] =
        combine(high ? second : first, shuffle_xor(high ? first : second, 16));
    sync();
    real found[WARPS];
    UNROLL for (int w = 0; w < WARPS; w++) found[w] = memory.part[w][LANE];
    UNROLL for (int half = WARPS / 2; half; half /= 2)
        UNROLL for (int w = 0; w < half; w++) found[w] = combine(found[w], found[w + half]);
    return found[0];
}

// Write the list of this block into all blocks of the cluster; warps share these.
DEVICE void publish(const Elsewhere* lists, int now, int i, real y) {
    unsigned active = vote(y != 0);
    int place = popcount(active & ((1u << LANE) - 1));
    UNROLL for (int r = 0; r < RANKS; r++)
        if (CLUSTER % WARPS == 0 || WARP + r * WARPS < CLUSTER) {
            Elsewhere list = lists[r] + now * (int)sizeof(List) * CLUSTER;
            if (y != 0) store_rate(list + place * (int)sizeof(Rate), i * ROWS * (int)sizeof(real), y);
            if (LANE == 0) store_bits(list + (int)sizeof(Rate) * ROWS, active);
        }
}

DEVICE real y_of(const List* lists, int j) {
    const List& list = lists[j / ROWS];
    unsigned bit = 1u << j % ROWS;
    return list.active & bit ? list.rates[popcount(list.active & (bit - 1))].y : (real)0;
}

// Change the four weights of this lane in each of some columns; quarters of warps share these.
template <typename Change> DEVICE void change_columns(Cluster& memory, Change change) {
    const int AT_ONCE = 4;
    int n = memory.net.n;
    ROLLED for (int first = QUARTER; first < n; first += AT_ONCE * QUARTERS) {
        Four weights[AT_ONCE];
        UNROLL for (int j = 0; j < AT_ONCE; j++)
            if (first + j * QUARTERS < n) weights[j] = *four_of(memory, first + j * QUARTERS);
        UNROLL for (int j = 0; j < AT_ONCE; j++)
            if (first + j * QUARTERS < n) {
                change(first + j * QUARTERS, weights[j]);
                *four_of(memory, first + j * QUARTERS) = weights[j];
            }
    }
}

// What the rows of M̂ are multiplied by: s, unless a row has only faded, and has to keep its direction.
DEVICE real kept_scale_of_rows(Cluster& memory, const Own& own, real s) {
    bool faded = s != 1 && !own.grown;
    if (!vote_any(faded)) return s;
    Four largest = {0, 0, 0, 0};
    ROLLED for (int j = QUARTER; j < memory.net.n; j += QUARTERS) {
        Four weights = *four_of(memory, j);
        UNROLL for (int e = 0; e < 4; e++) largest.of[e] = larger(largest.of[e], weights.of[e]);
    }
    real of_row = over_block(memory, largest, [](real a, real b) { return larger(a, b); });
    return faded ? kept_scale(memory.net, of_row, s) : s;
}

DEVICE real kept_scale_of_warps_row(Net& net, const real* w, real scale) {
    real largest = 0;
    for (int j = LANE; j < net.m; j += 32) largest = larger(largest, w[j]);
    for (int apart = 16; apart; apart /= 2) largest = larger(largest, shuffle_xor(largest, apart));
    return kept_scale(net, largest, scale);
}

// b = W @ x; a warp has four rows at a time.
DEVICE real feed_forward_rows(Cluster& memory, const real* x) {
    Net& net = memory.net;
    int m = net.m, first_row = RANK * ROWS;
    ROLLED for (int first = WARP; first < ROWS; first += 4 * WARPS) {
        real sum[4] = {0, 0, 0, 0};
        ROLLED for (int j = LANE; j < m; j += 128) {
            real weights[4][4], x_j[4];
            UNROLL for (int e = 0; e < 4; e++) x_j[e] = j + 32 * e < m ? x[j + 32 * e] : (real)0;
            UNROLL for (int r = 0; r < 4; r++)
                UNROLL for (int e = 0; e < 4; e++) {
                    int i = first_row + first + r * WARPS;
                    bool exists = i < net.n && first + r * WARPS < ROWS && j + 32 * e < m;
                    weights[r][e] = exists ? global(net.W)[(size_t)i * m + j + 32 * e] : (real)0;
                }
            UNROLL for (int r = 0; r < 4; r++)
                UNROLL for (int e = 0; e < 4; e++) sum[r] = plus(weights[r][e], x_j[e], sum[r]);
        }
        UNROLL for (int r = 0; r < 4; r++) {
            sum[r] = sum_of_warp(sum[r]);
            if (LANE == 0 && first + r * WARPS < ROWS) memory.b[first + r * WARPS] = sum[r];
        }
    }
    sync();
    return memory.b[LANE];
}

// W as it should be at the end of a hold: see `fold_W`.
DEVICE void fold_rows_of_W(Net& net, const Own& own, const real* x, real sum_x) {
    bool changed = own.scale != 1 || own.shift != 0;
    // A row that only leaks keeps its direction. Its largest weight is at least b / Σ x, which nearly always is enough.
    unsigned all_changed = vote(changed), faded = vote(changed && own.shift == 0 && !(own.b >= 2 * net.smallest * sum_x));
    if (!all_changed) return;
    int m = net.m, first_row = RANK * ROWS;
    ROLLED for (int first = WARP; first < ROWS; first += 4 * WARPS) {
        real scale[4], shift[4];
        bool changes[4];
        UNROLL for (int r = 0; r < 4; r++) {
            int row = first + r * WARPS < ROWS ? first + r * WARPS : first;
            scale[r] = shuffle(own.scale, row), shift[r] = shuffle(own.shift, row);
            changes[r] = first + r * WARPS < ROWS && (all_changed >> row & 1);
            if (changes[r] && (faded >> row & 1))
                scale[r] = kept_scale_of_warps_row(net, global(net.W) + (size_t)(first_row + row) * m, scale[r]);
        }
        ROLLED for (int j = LANE; j < m; j += 128) {
            real weights[4][4];
            UNROLL for (int r = 0; r < 4; r++)
                UNROLL for (int e = 0; e < 4; e++)
                    if (changes[r] && j + 32 * e < m)
                        weights[r][e] = global(net.W)[(size_t)(first_row + first + r * WARPS) * m + j + 32 * e];
            UNROLL for (int r = 0; r < 4; r++)
                UNROLL for (int e = 0; e < 4; e++)
                    if (changes[r] && j + 32 * e < m)
                        global(net.W)[(size_t)(first_row + first + r * WARPS) * m + j + 32 * e] =
                            scale[r] * weights[r][e] + shift[r] * x[j + 32 * e];
        }
    }
}

// M as it should be at the end of a hold, when it has grown.
DEVICE void fold_rows_of_M(Cluster& memory, const Own& own) {
    if (!vote_any(own.s != 1)) return;
    Four factors = of_four(kept_scale_of_rows(memory, own, own.s));
    if (!are(factors, 1))
        change_columns(memory, [=](int, Four& weights) {
            UNROLL for (int e = 0; e < 4; e++) weights.of[e] *= factors.of[e];
        });
    sync();
}

DEVICE void change_row(Own& own, const Terms& terms, real gain_w, real gain_m, real x_x) {
    own.a = terms.a;
    own.scale *= terms.keep_w;
    own.shift = terms.keep_w * own.shift + gain_w;
    own.b = terms.keep_w * own.b + gain_w * x_x;
    own.s *= terms.keep_m;
    own.gain = gain_m / own.s;
    own.grown |= own.gain != 0;
}

// Update a row, unless it has to be rectified, or its scale to be brought back to 1. Gives whether that is so.
DEVICE bool update_row(Cluster& memory, Own& own, real x_x) {
    Terms terms = terms_of_update(memory.rule, own.y, own.a);
    bool odd = odd_W(terms, own.scale) || odd_M(memory.net.floor, terms, own.s);
    if (!odd) change_row(own, terms, terms.gain, terms.gain, x_x);
    return odd;
}

// Update the rows for which that is so, when the lists of this step are complete. The whole block takes part.
DEVICE void update_odd_rows(Cluster& memory, Own& own, const List* lists, bool odd, const real* x, real x_x) {
    Net& net = memory.net;
    Terms terms = terms_of_update(memory.rule, own.y, own.a);
    real gain_w = terms.gain, gain_m = terms.gain;
    bool of_W = odd && odd_W(terms, own.scale), of_M = odd && odd_M(net.floor, terms, own.s);
    if (unsigned rows = vote(of_W)) {
        bool rectified = !(terms.keep_w >= 0 && terms.gain >= 0);
        ROLLED for (int row = WARP; row < ROWS; row += WARPS) {
            if (!(rows >> row & 1)) continue;
            real scale = shuffle(own.scale, row), shift = shuffle(own.shift, row), total = 0;
            real keep = shuffle(rectified ? terms.keep_w : (real)1, row);  // weights that are not rectified are not < 0
            real gain = shuffle(rectified ? terms.gain : (real)0, row);
            real* w = global(net.W) + (size_t)(RANK * ROWS + row) * net.m;
            if (!(vote(rectified) >> row & 1) && shift == 0) scale = kept_scale_of_warps_row(net, w, scale);
            for (int j = LANE; j < net.m; j += 32) {
                real x_j = x[j], weight = scale * w[j] + shift * x_j;
                weight = positive(keep * weight + gain * x_j);
                w[j] = weight, total = plus(weight, x_j, total);
            }
            total = sum_of_warp(total);
            if (LANE == 0) memory.b[row] = total;
        }
        sync();
        if (of_W) {
            own.scale = 1, own.shift = 0, own.b = memory.b[LANE];
            if (rectified) terms.keep_w = 1, gain_w = 0;
        }
    }
    if (vote_any(of_M)) {
        bool rectified = of_M && (net.floor != 0 || !(terms.keep_m >= 0 && terms.gain >= 0));
        real s = kept_scale_of_rows(memory, own, !of_M ? (real)1 : rectified ? own.s : own.s * terms.keep_m);
        Four factor = of_four(s), keep = of_four(rectified ? terms.keep_m : (real)1);
        Four gain = of_four(rectified ? terms.gain : (real)0), drop = of_four(rectified ? terms.eta * net.floor : (real)0);
        if (vote(of_M) >> 4 * OWN_FOUR & 15)
            change_columns(memory, [=](int j, Four& weights) {
                real y = y_of(lists, j);
                UNROLL for (int e = 0; e < 4; e++)
                    weights.of[e] = positive(keep.of[e] * (weights.of[e] * factor.of[e]) + gain.of[e] * y - drop.of[e]);
            });
        if (of_M) {
            own.s = 1, own.grown = false, terms.keep_m = 1;
            if (rectified) gain_m = 0;
        }
    }
    if (odd) change_row(own, terms, gain_w, gain_m, x_x);
    sync();
}

// What the first warp writes of a step, when the lists are complete.
DEVICE void write_traces(Cluster& memory, const Own& own, const List* lists, int i, long long t, bool opens, int pixels) {
    Net& net = memory.net;
    int active = LANE < CLUSTER ? popcount(lists[LANE].active) : 0;
    for (int apart = 16; apart; apart /= 2) active += shuffle_xor(active, apart);
    if (!own.exists) return;
    if (net.trace_y) global(net.trace_y)[t * net.n + i] = own.y;
    if (net.trace_burst) global(net.trace_burst)[t * net.n + i] = opens;
    if (net.trace_active && own.y > 0) add_to(&global(net.trace_active)[t], 1);
    if (net.trace_updates && opens) {
        Terms terms = terms_of_update(memory.rule, own.y, own.a);  // its leaks do not depend on a
        add_to(&global(net.trace_updates)[t], synapses_changed(net, terms, own.y, pixels, active));
    }
}

KERNEL(advance, Net* nets) {
    Cluster& memory = *(Cluster*)(MEMORY(nets));
    Net& net = memory.net;
    if (THREAD == 0) net = nets[BLOCK];
    sync();
    int i = RANK * ROWS + LANE, n = net.n, hold = net.hold;
    for EACH(j, RULE_CONSTANTS) memory.rule[j] = global(net.rule)[j];
    for (int j = QUARTER; j < CLUSTER * ROWS; j += QUARTERS) {  // past the last row and column, 0
        Four weights = {0, 0, 0, 0};
        int row = RANK * ROWS + 4 * OWN_FOUR;
        if (j < n && row < n) weights = *(const Four*)(global(net.P) + (size_t)j * net.stride + row);
        *four_of(memory, j) = weights;
    }
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS];
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = global(net.dynamics)[j];
    UNROLL for (int j = 0; j < SCHEDULE_CONSTANTS; j++) schedule[j] = global(net.schedule)[j];
    Elsewhere places[RANKS];
    UNROLL for (int r = 0; r < RANKS; r++) places[r] = place_in((WARP + r * WARPS) % CLUSTER, &memory.lists[0][RANK]);
    Own own = {0, 0, 0, 0, 1, 1, 0, 0, 0, i < n, false};
    if (own.exists) own.u = ROW(U)[i], own.y = ROW(Y)[i], own.a = ROW(A)[i], own.c = COUNT(C)[i];
    bool traced = WARP == 0 && (net.trace_y || net.trace_burst || net.trace_active || net.trace_updates);
    bool learned = false, growing = false;  // has a row changed; is a row still to grow?
    int now = 0;                            // which lists are read
    arrive(), wait_for_all();               // all blocks are there
    publish(places, now, i, own.y);
    arrive(), wait_for_all();
    for (int stimulus = 0; stimulus < net.stimuli; stimulus++) {
        const real* x = global(net.X) + (size_t)stimulus * net.m;
        if (net.from_rest) {
            real unused;
            step(dynamics, 0, 0, 0, 0, 0, own.u, own.y, unused, unused);
            if (!own.exists) own.y = 0;
            now ^= 1;
            publish(places, now, i, own.y);
            arrive(), wait_for_all();
        }
        real x_x = 0, sum_x = 0;
        int pixels = 0;
        for (int j = LANE; j < net.m; j += 32)
            x_x = plus(x[j], x[j], x_x), sum_x += x[j] > 0 ? x[j] : (real)0, pixels += x[j] != 0;
        x_x = sum_of_warp(x_x), sum_x = sum_of_warp(sum_x);
        for (int apart = 16; apart; apart /= 2) pixels += shuffle_xor(pixels, apart);
        own.s = own.scale = 1, own.shift = 0, own.grown = false;
        own.b = feed_forward_rows(memory, x);
        ROLLED for (int k = 0; k < hold; k++) {
            // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
            const List* lists = memory.lists[now];
            Four sums = growing ? pass<true>(memory, lists, own.gain) : pass<false>(memory, lists, 0);
            real inhibition = over_block(memory, sums, [](real a, real b) { return a + b; });
            real new_u, new_y, beta, unused;
            long long new_c;
            step(dynamics, own.u, own.y, 0, own.b - own.s * inhibition, 0, new_u, new_y, unused, unused);
            own.u = new_u, own.y = own.exists ? new_y : (real)0;
            now ^= 1;
            publish(places, now, i, own.y);
            arrive();
            gate(schedule, own.y, 0, own.c, k, hold, beta, new_c);
            own.c = new_c;
            bool opens = own.exists && beta != 0, odd = false, any_odd = false;
            own.gain = 0, growing = false;
            if (vote_any(opens)) {
                if (opens) odd = update_row(memory, own, x_x);
                any_odd = vote_any(odd), growing = vote_any(own.gain != 0), learned = true;
            }
            wait_for_all();
            if (any_odd) {
                update_odd_rows(memory, own, memory.lists[now], odd, x, x_x);
                growing = vote_any(own.gain != 0);
            }
            if (traced)
                write_traces(memory, own, memory.lists[now], i, (long long)stimulus * hold + k, opens, pixels);
        }
        fold_rows_of_W(net, own, x, sum_x);
        if (growing) {
            pass<true>(memory, memory.lists[now], own.gain);
            growing = false;
            sync();
        }
        fold_rows_of_M(memory, own);
        if (net.settled && WARP == 0 && own.exists) global(net.settled)[(size_t)stimulus * n + i] = own.y;
    }
    if (WARP == 0 && own.exists) ROW(U)[i] = own.u, ROW(Y)[i] = own.y, ROW(A)[i] = own.a, COUNT(C)[i] = own.c;
    if (learned)  // what is frozen must not be written
        for (int j = QUARTER; j < n; j += QUARTERS) {
            int row = RANK * ROWS + 4 * OWN_FOUR;
            if (row < n) *(Four*)(global(net.P) + (size_t)j * net.stride + row) = *four_of(memory, j);
        }
}
