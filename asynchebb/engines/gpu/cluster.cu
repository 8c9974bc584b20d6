// Networks of which many neurons are active: a cluster of blocks has one, with all of M in their shared memory.
//
// Each block has OWNED consecutive neurons, a lane each, and their rows of M, by column; all columns stay there for the
// whole call. At each step a block goes through the columns of the active neurons (`pass`), of which it has lists, one
// from each block; every warp then takes the step of all of the block's neurons, the same in each, so that nothing has to
// be told within the block; and the warps write the new list into all blocks of the cluster (`publish`).
//
// Blocks wait for each other's lists alone. There are two sets of these, which take turns: at step k a block reads one
// set, and writes into the other one of all blocks. These read it at step k − 1, before they wrote the lists that this
// block has waited for: so no list is written while it is read. The same holds for `part` and the warps of a block, which
// meet once per step.
//
// All warps agree on what their votes say of the block's neurons, so that a whole block takes the same branch.

#define QUARTER ((int)THREAD / 8)          // eight lanes have the rows of a column, four each
#define QUARTERS (THREADS / 8)
#define SHARING (QUARTERS / CLUSTER)       // quarters of warps that share a list
#define OWN_FOUR (LANE % 8)                // of the rows

struct alignas(2 * sizeof(real)) Rate {
    int column;  // how many bytes before it
    real y;
};
struct alignas(16) List {  // of a block's active neurons
    Rate rates[OWNED];
    unsigned active;  // a bit for each
};

struct Cluster {  // in the shared memory of each block
    Net net;
    real rule[RULE_CONSTANTS];
    int pixels;  // that are not 0
    bool traced, learned;  // is something to be written at each step; has a row changed?
    Mailbox mailbox[2];
    List lists[2][CLUSTER];
    real part[2][WARPS][OWNED];  // what each warp has found of each row, in turn with the lists
    Four slice[CLUSTER * OWNED * OWNED / 4];  // these rows of M̂, by column
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

DEVICE Four* four_of(Cluster& memory, int column) { return memory.slice + column * (OWNED / 4) + OWN_FOUR; }

// Σ_j m̂_ij y_j over some of the active j, for the four rows of this lane. Where rows GROW, M̂ += gains yᵀ before that.
template <bool GROW> DEVICE Four pass(Cluster& memory, const List* lists, real gain) {
    const int EACH_HAS = OWNED / SHARING, AT_ONCE = EACH_HAS < 4 ? EACH_HAS : 4;
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
template <typename Combine> DEVICE real over_block(real part_of[WARPS][OWNED], const Four& part, Combine combine) {
    // Each gives away what belongs to the others: two of four, then one of two.
    bool odd = LANE & 8, high = LANE & 16;
    real first = combine(odd ? part.of[1] : part.of[0], shuffle_xor(odd ? part.of[0] : part.of[1], 8));
    real second = combine(odd ? part.of[3] : part.of[2], shuffle_xor(odd ? part.of[2] : part.of[3], 8));
    part_of[WARP][4 * OWN_FOUR + LANE / 8] =
        combine(high ? second : first, shuffle_xor(high ? first : second, 16));
    sync();
    real found[WARPS];
    UNROLL for (int w = 0; w < WARPS; w++) found[w] = part_of[w][LANE];
    UNROLL for (int half = WARPS / 2; half; half /= 2)
        UNROLL for (int w = 0; w < half; w++) found[w] = combine(found[w], found[w + half]);
    return found[0];
}

// Write the list of this block into all blocks of the cluster; warps share these.
DEVICE void publish(Cluster& memory, int turn, int i, real y) {
    List* list = &memory.lists[turn & 1][RANK];
    Mailbox* mailbox = &memory.mailbox[turn & 1];
    unsigned active = vote(y != 0);
    int count = popcount(active), place = popcount(active & ((1u << LANE) - 1));
    UNROLL for (int r = 0; r < (CLUSTER + WARPS - 1) / WARPS; r++) {
        int rank = WARP + r * WARPS;
        if (CLUSTER % WARPS != 0 && rank >= CLUSTER) break;
        Elsewhere its_mailbox = place_in(rank, mailbox);
        if (y != 0) send(place_in(rank, &list->rates[place]), its_mailbox, i * OWNED * (int)sizeof(real), y);
        if (LANE == 0) {
            send(place_in(rank, &list->active), its_mailbox, active);
            announce(its_mailbox, count * (int)sizeof(Rate) + (int)sizeof(active));
        }
    }
}

DEVICE real y_of(const List* lists, int j) {
    const List& list = lists[j / OWNED];
    unsigned bit = 1u << j % OWNED;
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
DEVICE real kept_scale_of_rows(Cluster& memory, const Own& own, real s, int turn) {
    bool faded = s != 1 && !own.grown;
    if (!vote_any(faded)) return s;
    Four largest = {0, 0, 0, 0};
    ROLLED for (int j = QUARTER; j < memory.net.n; j += QUARTERS) {
        Four weights = *four_of(memory, j);
        UNROLL for (int e = 0; e < 4; e++) largest.of[e] = larger(largest.of[e], weights.of[e]);
    }
    real of_row = over_block(memory.part[turn & 1], largest, [](real a, real b) { return larger(a, b); });
    return faded ? kept_scale(memory.net, of_row, s) : s;
}

DEVICE real largest_of_warp(real x) {
    for (int apart = 16; apart; apart /= 2) x = larger(x, shuffle_xor(x, apart));
    return x;
}

// Of four rows of W that a warp has, two weights of each: act(which row, which weight, where it is).
template <typename Act> DEVICE void each_weight(const Net& net, int first, int j, Act act) {
    int m = net.m, rows = (int)net.n - RANK * OWNED < OWNED ? (int)net.n - RANK * OWNED : OWNED;
    real* W = global(net.W) + (size_t)(RANK * OWNED + first) * m;
    UNROLL for (int r = 0; r < 4; r++)
        UNROLL for (int e = 0; e < 2; e++)
            if (first + r * WARPS < rows && j + 32 * e < m) act(r, e, W + (size_t)(r * WARPS) * m + j + 32 * e);
}

// b = W @ x; a warp has four rows at a time.
DEVICE real feed_forward_rows(Cluster& memory, const real* x, real* b) {
    const Net& net = memory.net;
    int m = net.m;
    ROLLED for (int first = WARP; first < OWNED; first += 4 * WARPS) {
        real sum[4] = {0, 0, 0, 0};
        ROLLED for (int j = LANE; j < m; j += 64) {
            real weights[4][2] = {}, some[2];
            UNROLL for (int e = 0; e < 2; e++) some[e] = j + 32 * e < m ? x[j + 32 * e] : (real)0;
            each_weight(net, first, j, [&](int r, int e, const real* place) { weights[r][e] = *place; });
            UNROLL for (int r = 0; r < 4; r++)
                UNROLL for (int e = 0; e < 2; e++) sum[r] = plus(weights[r][e], some[e], sum[r]);
        }
        UNROLL for (int r = 0; r < 4; r++) {
            sum[r] = sum_of_warp(sum[r]);
            if (LANE == 0 && first + r * WARPS < OWNED) b[first + r * WARPS] = sum[r];
        }
    }
    sync();
    return b[LANE];
}

// W as it should be at the end of a hold: see `fold_W`.
DEVICE void fold_rows_of_W(Net& net, const Own& own, const real* x) {
    bool changed = own.scale != 1 || own.shift != 0;
    if (!vote_any(changed)) return;
    // A row that only leaks keeps its direction. Its largest weight is at least b / Σ x, which nearly always is enough.
    unsigned faded = vote(changed && own.shift == 0 && !(own.b >= 2 * net.smallest * net.sum_x));
    real kept = own.scale;
    ROLLED for (int row = WARP; faded && row < OWNED; row += WARPS)
        if (faded >> row & 1) {
            const real* w = global(net.W) + (size_t)(RANK * OWNED + row) * net.m;
            real largest = 0;
            for (int j = LANE; j < net.m; j += 32) largest = larger(largest, w[j]);
            largest = largest_of_warp(largest);
            if (LANE == row) kept = kept_scale(net, largest, kept);
        }
    int m = net.m;
    ROLLED for (int first = WARP; first < OWNED; first += 4 * WARPS) {
        real scale[4], shift[4];
        UNROLL for (int r = 0; r < 4; r++)
            scale[r] = shuffle(kept, first + r * WARPS), shift[r] = shuffle(own.shift, first + r * WARPS);
        ROLLED for (int j = LANE; j < m; j += 64) {
            real weights[4][2], some[2];
            UNROLL for (int e = 0; e < 2; e++) some[e] = j + 32 * e < m ? x[j + 32 * e] : (real)0;
            each_weight(net, first, j, [&](int r, int e, const real* place) { weights[r][e] = *place; });
            each_weight(net, first, j, [&](int r, int e, real* place) {
                if (scale[r] != 1 || shift[r] != 0) *place = scale[r] * weights[r][e] + shift[r] * some[e];
            });
        }
    }
}

// M as it should be at the end of a hold, when it has grown.
DEVICE void fold_rows_of_M(Cluster& memory, const Own& own, int turn) {
    if (!vote_any(own.s != 1)) return;
    Four factors = of_four(kept_scale_of_rows(memory, own, own.s, turn));
    if (!are(factors, 1))
        change_columns(memory, [=](int, Four& weights) {
            UNROLL for (int e = 0; e < 4; e++) weights.of[e] *= factors.of[e];
        });
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
DEVICE bool update_row(Cluster& memory, Own& own) {
    Terms terms = terms_of_update(memory.rule, own.y, own.a);
    bool odd = odd_W(terms, own.scale) || odd_M(memory.net.floor, terms, own.s);
    if (!odd) change_row(own, terms, terms.gain, terms.gain, memory.net.x_x);
    return odd;
}

// Update the rows for which that is so, when the lists of this step are complete. The whole block takes part.
DEVICE void update_odd_rows(Cluster& memory, Own& own, int turn, bool odd, const real* x) {
    const List* lists = memory.lists[turn & 1];
    Net& net = memory.net;
    Terms terms = terms_of_update(memory.rule, own.y, own.a);
    real gain_w = terms.gain, gain_m = terms.gain, *b = memory.part[turn & 1][0];
    bool of_W = odd && odd_W(terms, own.scale), of_M = odd && odd_M(net.floor, terms, own.s);
    if (unsigned rows = vote(of_W)) {
        bool rectified = !(terms.keep_w >= 0 && terms.gain >= 0);
        ROLLED for (int row = WARP; row < OWNED; row += WARPS) {
            if (!(rows >> row & 1)) continue;
            real scale = shuffle(own.scale, row), shift = shuffle(own.shift, row), total = 0;
            real keep = shuffle(rectified ? terms.keep_w : (real)1, row);  // weights that are not rectified are not < 0
            real gain = shuffle(rectified ? terms.gain : (real)0, row);
            real* w = global(net.W) + (size_t)(RANK * OWNED + row) * net.m;
            if (!(vote(rectified) >> row & 1) && shift == 0) {
                real largest = 0;
                for (int j = LANE; j < net.m; j += 32) largest = larger(largest, w[j]);
                scale = kept_scale(net, largest_of_warp(largest), scale);
            }
            for (int j = LANE; j < net.m; j += 32) {
                real x_j = x[j], weight = scale * w[j] + shift * x_j;
                weight = positive(keep * weight + gain * x_j);
                w[j] = weight, total = plus(weight, x_j, total);
            }
            total = sum_of_warp(total);
            if (LANE == 0) b[row] = total;
        }
        sync();
        if (of_W) {
            own.scale = 1, own.shift = 0, own.b = b[LANE];
            if (rectified) terms.keep_w = 1, gain_w = 0;
        }
        sync();
    }
    if (vote_any(of_M)) {
        bool rectified = of_M && (net.floor != 0 || !(terms.keep_m >= 0 && terms.gain >= 0));
        real s = kept_scale_of_rows(memory, own, !of_M ? (real)1 : rectified ? own.s : own.s * terms.keep_m, turn);
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
    if (odd) change_row(own, terms, gain_w, gain_m, net.x_x);
    sync();
}

// What the first warp writes of a step, when the lists are complete.
DEVICE void write_traces(Cluster& memory, const Own& own, const List* lists, int i, long long t, bool opens) {
    Net& net = memory.net;
    int active = LANE < CLUSTER ? popcount(lists[LANE].active) : 0;
    for (int apart = 16; apart; apart /= 2) active += shuffle_xor(active, apart);
    if (!own.exists) return;
    if (net.trace_y) global(net.trace_y)[t * net.n + i] = own.y;
    if (net.trace_burst) global(net.trace_burst)[t * net.n + i] = opens;
    if (net.trace_active && own.y > 0) add_to(&global(net.trace_active)[t], 1);
    if (net.trace_updates && opens) {
        Terms terms = terms_of_update(memory.rule, own.y, own.a);  // its leaks do not depend on a
        add_to(&global(net.trace_updates)[t], synapses_changed(net, terms, own.y, memory.pixels, active));
    }
}

// What is to be known of a stimulus besides b.
DEVICE void describe(Cluster& memory, const real* x) {
    if (WARP != 0) return;
    real squares = 0, sum = 0;
    int pixels = 0;
    for (int j = LANE; j < memory.net.m; j += 32)
        squares = plus(x[j], x[j], squares), sum += x[j] > 0 ? x[j] : (real)0, pixels += x[j] != 0;
    squares = sum_of_warp(squares), sum = sum_of_warp(sum);
    for (int apart = 16; apart; apart /= 2) pixels += shuffle_xor(pixels, apart);
    if (LANE == 0) memory.net.x_x = squares, memory.net.sum_x = sum, memory.pixels = pixels;
}

KERNEL(advance, Net* nets) {
    Cluster& memory = *(Cluster*)(MEMORY(nets));
    Net& net = memory.net;
    if (THREAD == 0) net = nets[BLOCK];
    sync();
    int i = RANK * OWNED + LANE, n = net.n, hold = net.hold;
    for EACH(j, RULE_CONSTANTS) memory.rule[j] = global(net.rule)[j];
    for (int j = QUARTER; j < CLUSTER * OWNED; j += QUARTERS) {  // past the last row and column, 0
        Four weights = {0, 0, 0, 0};
        int row = RANK * OWNED + 4 * OWN_FOUR;
        if (j < n && row < n) weights = *(const Four*)(global(net.P) + (size_t)j * net.stride + row);
        *four_of(memory, j) = weights;
    }
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS];
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = global(net.dynamics)[j];
    UNROLL for (int j = 0; j < SCHEDULE_CONSTANTS; j++) schedule[j] = global(net.schedule)[j];
    Own own = {0, 0, 0, 0, 1, 1, 0, 0, 0, i < n, false};
    if (own.exists) own.u = ROW(U)[i], own.y = ROW(Y)[i], own.a = ROW(A)[i], own.c = COUNT(C)[i];
    bool growing = false;  // is a row still to grow?
    int turn = -1;         // of the lists that are read
    if (THREAD == 0) {
        memory.traced = net.trace_y || net.trace_burst || net.trace_active || net.trace_updates, memory.learned = false;
        open_mailbox(&memory.mailbox[0]), open_mailbox(&memory.mailbox[1]);
    }
    meet();
    SPENT(ON_BEGINNING)
    for (int stimulus = 0; stimulus < net.stimuli; stimulus++) {
        if (net.from_rest) {
            real unused;
            step(dynamics, 0, 0, 0, 0, 0, own.u, own.y, unused, unused);
            if (!own.exists) own.y = 0;
        }
        if (net.from_rest || stimulus == 0) publish(memory, ++turn, i, own.y);
        const real* x = global(net.X) + (size_t)stimulus * net.m;
        describe(memory, x);
        own.s = own.scale = 1, own.shift = 0, own.grown = false;
        own.b = feed_forward_rows(memory, x, memory.part[~turn & 1][0]);
        if (net.from_rest || stimulus == 0) wait_for_mail(&memory.mailbox[turn & 1], turn >> 1);
        SPENT(ON_WX)
        ROLLED for (int k = 0; k < hold; k++) {
            // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
            const List* lists = memory.lists[turn & 1];
            Four sums = growing ? pass<true>(memory, lists, own.gain) : pass<false>(memory, lists, 0);
            real inhibition = over_block(memory.part[turn & 1], sums, [](real a, real b) { return a + b; });
            real new_u, new_y, beta, unused;
            long long new_c;
            step(dynamics, own.u, own.y, 0, own.b - own.s * inhibition, 0, new_u, new_y, unused, unused);
            own.u = new_u, own.y = own.exists ? new_y : (real)0;
            publish(memory, ++turn, i, own.y);
            gate(schedule, own.y, 0, own.c, k, hold, beta, new_c);
            own.c = new_c;
            bool opens = own.exists && beta != 0, odd = false, any_odd = false;
            own.gain = 0, growing = false;
            if (vote_any(opens)) {
                if (opens) odd = update_row(memory, own);
                any_odd = vote_any(odd), growing = vote_any(own.gain != 0), memory.learned = true;
            }
            bool traced = WARP == 0 && memory.traced;
            wait_for_mail(&memory.mailbox[turn & 1], turn >> 1);
            if (any_odd) {
                update_odd_rows(memory, own, turn, odd, global(net.X) + (size_t)stimulus * net.m);
                growing = vote_any(own.gain != 0);
            }
            if (traced)
                write_traces(memory, own, memory.lists[turn & 1], i, (long long)stimulus * hold + k, opens);
        }
        SPENT(ON_ALL)
        fold_rows_of_W(net, own, global(net.X) + (size_t)stimulus * net.m);
        if (growing) pass<true>(memory, memory.lists[turn & 1], own.gain);
        growing = false;
        sync();
        fold_rows_of_M(memory, own, turn);
        if (net.settled && WARP == 0 && own.exists) global(net.settled)[(size_t)stimulus * n + i] = own.y;
        sync();  // no one needs the last lists, nor what is known of x
        SPENT(ON_FOLDING)
    }
    if (WARP == 0 && own.exists) ROW(U)[i] = own.u, ROW(Y)[i] = own.y, ROW(A)[i] = own.a, COUNT(C)[i] = own.c;
    if (memory.learned)  // what is frozen must not be written
        for (int j = QUARTER; j < n; j += QUARTERS) {
            int row = RANK * OWNED + 4 * OWN_FOUR;
            if (row < n) *(Four*)(global(net.P) + (size_t)j * net.stride + row) = *four_of(memory, j);
        }
    meet();  // a block stays until the others have told it all
}
