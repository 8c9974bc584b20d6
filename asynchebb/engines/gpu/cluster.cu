// Networks of which many neurons are active: a cluster of blocks has one, with all of M in their shared memory.
//
// Each block has OWNED consecutive neurons, a lane each, and their rows of M, by column; all columns stay there for the
// whole call. At each step a block goes through the columns of the active neurons (`pass`), of which it has lists, one
// from each block; every warp then takes the step of all of the block's neurons, the same in each, so that nothing has to
// be told within the block; and the warps write the new list into all blocks of the cluster (`publish`).
//
// Blocks wait for each other's lists alone. Each word of these says in which turn it was written: a reader looks at it
// until that is the turn it wants. There are two sets of lists: at turn t a block reads one, all of it, its warps meet, and
// then it writes into the other one of all blocks. These have read that one, which has turn t − 1, before they wrote what
// this block has waited for: so no list is written while it is read, and none before what was last written there has
// arrived. This needs each block to wait for all lists of each turn, also for those that it does not need.
// The same holds for `part` and the warps of a block, which meet once per step.
//
// A word has the last bits of its turn alone, and places late in a list may not be written for long: in half as many turns
// as these bits can tell apart all blocks meet once and renew the words (`renew`).
//
// All warps agree on what their votes say of the block's neurons, so that a whole block takes the same branch.

#define QUARTER ((int)THREAD / 8)          // eight lanes have the rows of a column, four each
#define QUARTERS (THREADS / 8)
#define SHARING (QUARTERS / CLUSTER)       // quarters of warps that share a list
#define OWN_FOUR (LANE % 8)                // of the rows

#define PARTS (int)(sizeof(real) / 4)      // of a number, a word for each

#ifndef TURN_BITS
#define TURN_BITS 15
#endif
#define COLUMN_BITS 17

struct alignas(8) Word {
    unsigned mark;  // the last bits of its turn, and of a rate's column how many bytes are before it
    unsigned bits;
};
struct List {  // of a block's active neurons
    Word active;  // a bit for each
    Word rates[OWNED][PARTS];
};
union Bits {
    real y;
    unsigned parts[PARTS];
};

struct Cluster {  // in the shared memory of each block
    Net net;
    real rule[RULE_CONSTANTS];
    int pixels;  // that are not 0
    bool traced, learned;  // is something to be written at each step; has a row changed?
    List lists[2][CLUSTER];
    real part[2][WARPS][OWNED];  // what each warp has found of each row, in turn with the lists
    Four slice[CLUSTER * OWNED * OWNED / 4];  // these rows of M̂, by column
};
SIZE(shared_bytes, sizeof(Cluster));
static_assert(CLUSTER * OWNED * OWNED * sizeof(real) <= 1 << COLUMN_BITS, "a column's place has too many bits");

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

DEVICE unsigned mark_of(unsigned turn) { return (turn & ((1u << TURN_BITS) - 1)) << COLUMN_BITS; }

DEVICE bool is_late(unsigned differences) { return differences >> COLUMN_BITS != 0; }

// Σ_j m̂_ij y_j over some of the active j, for the four rows of this lane. Where rows GROW, M̂ += gains yᵀ before that.
template <bool GROW> DEVICE Four pass(Cluster& memory, unsigned turn, real gain) {
    const int EACH_HAS = OWNED / SHARING, AT_ONCE = EACH_HAS < 4 ? EACH_HAS : 4;
    const List* list = &memory.lists[turn & 1][QUARTER / SHARING];
    const Word(*rates)[PARTS] = list->rates + QUARTER % SHARING;
    unsigned mark = mark_of(turn), active, found;
    const char* slice = (char*)four_of(memory, 0) - mark;
    Four sum = {0, 0, 0, 0}, gains;
    if (GROW) gains = of_four(gain);
    bool grows = GROW && !are(gains, 0);
    do read_word(found, active, &list->active);
    while (vote_any(found != mark));
    int left = popcount(active) - QUARTER % SHARING;
    ROLLED while (vote_any(left > 0)) {
        unsigned columns[AT_ONCE], late = 0;
        Bits y[AT_ONCE];
        Four weights[AT_ONCE];
        UNROLL for (int j = 0; j < AT_ONCE; j++) {
            read_word(columns[j], y[j].parts[0], &rates[j * SHARING][0]);
            if (left > j * SHARING) late |= columns[j] ^ mark;
            UNROLL for (int part = 1; part < PARTS; part++) {
                read_word(found, y[j].parts[part], &rates[j * SHARING][part]);
                if (left > j * SHARING) late |= found ^ mark;
            }
        }
        if (vote_any(is_late(late))) continue;
        UNROLL for (int j = 0; j < AT_ONCE; j++)
            read_shared_if(left > j * SHARING, weights[j].of, (const real*)(slice + columns[j]));
        UNROLL for (int j = 0; j < AT_ONCE; j++)
            if (left > j * SHARING) {
                if (grows) {
                    UNROLL for (int e = 0; e < 4; e++) weights[j].of[e] = plus(gains.of[e], y[j].y, weights[j].of[e]);
                    *(Four*)(slice + columns[j]) = weights[j];
                }
                UNROLL for (int e = 0; e < 4; e++) sum.of[e] = plus(weights[j].of[e], y[j].y, sum.of[e]);
            }
        left -= AT_ONCE * SHARING, rates += AT_ONCE * SHARING;
    }
    return sum;
}

// The bits of a list's active neurons, when they are there.
DEVICE unsigned active_in(const List& list, unsigned turn) {
    unsigned found, active;
    for (read_word(found, active, &list.active); found != mark_of(turn); read_word(found, active, &list.active)) give_way();
    return active;
}

// Wait until all of the lists is there. The block then has to meet.
DEVICE void wait_for_lists(Cluster& memory, unsigned turn) {
    ROLLED for (int j = THREAD; j < CLUSTER * OWNED; j += THREADS) {
        const List& list = memory.lists[turn & 1][j / OWNED];
        if (j % OWNED >= popcount(active_in(list, turn))) continue;
        for (int part = 0; part < PARTS; part++) {
            unsigned found, unused;
            const Word* word = &list.rates[j % OWNED][part];
            for (read_word(found, unused, word); is_late(found ^ mark_of(turn)); read_word(found, unused, word)) give_way();
        }
    }
}

// Mark all words with this turn. No one must still have to read or to write them.
DEVICE void renew(Cluster& memory, unsigned turn) {
    ROLLED for EACH(j, (int)(sizeof(memory.lists) / sizeof(Word))) ((Word*)memory.lists)[j] = {mark_of(turn), 0};
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

// Where a warp writes the list of this block: in the first set of lists of these blocks of the cluster.
struct Readers {
    unsigned window;
    Elsewhere lists[(CLUSTER + WARPS - 1) / WARPS];
};

DEVICE Readers readers_of(Cluster& memory) {
    Readers found;
    found.window = window();
    UNROLL for (int r = 0; r < (CLUSTER + WARPS - 1) / WARPS; r++)
        found.lists[r] = place_in((WARP + r * WARPS) % CLUSTER, &memory.lists[0][RANK]);
    return found;
}

// Write the list of this block into all blocks of the cluster; warps share these.
DEVICE void publish(const Readers& readers, unsigned turn, int i, real y) {
    const int WORD = sizeof(Word);
    unsigned active = vote(y != 0), mark = mark_of(turn);
    int set = (turn & 1) * (int)sizeof(List[CLUSTER]), place = popcount(active & ((1u << LANE) - 1)) * PARTS * WORD;
    Bits bits = {y};
    UNROLL for (int r = 0; r < (CLUSTER + WARPS - 1) / WARPS; r++) {
        if (CLUSTER % WARPS != 0 && (int)WARP + r * WARPS >= CLUSTER) break;
        Elsewhere list = readers.lists[r] + set;
        send_if<WORD>(y != 0, readers.window, list + place, mark | i * OWNED * (int)sizeof(real), bits.parts[0]);
        if (PARTS > 1) send_if<2 * WORD>(y != 0, readers.window, list + place, mark, bits.parts[PARTS - 1]);
        send_if<0>(LANE == 0, readers.window, list, mark, active);
    }
}

// Of lists that are there.
DEVICE real y_of(const List* lists, int j) {
    const List& list = lists[j / OWNED];
    unsigned bit = 1u << j % OWNED, unused, active;
    read_word(unused, active, &list.active);
    if (!(active & bit)) return 0;
    Bits found;
    UNROLL for (int part = 0; part < PARTS; part++)
        read_word(unused, found.parts[part], &list.rates[popcount(active & (bit - 1))][part]);
    return found.y;
}

// Change the four weights of this lane in each of some columns; quarters of warps share these, some AT_ONCE.
template <int AT_ONCE, typename Change> DEVICE void change_columns(Cluster& memory, Change change) {
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
DEVICE real kept_scale_of_rows(Cluster& memory, const Own& own, real s, unsigned turn) {
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
DEVICE void fold_rows_of_M(Cluster& memory, const Own& own, unsigned turn) {
    if (!vote_any(own.s != 1)) return;
    Four factors = of_four(kept_scale_of_rows(memory, own, own.s, turn));
    if (!are(factors, 1))
        change_columns<4>(memory, [=](int, Four& weights) {
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

// Update the rows for which that is so. The whole block takes part.
DEVICE void update_odd_rows(Cluster& memory, Own& own, unsigned turn, bool odd, const real* x) {
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
        wait_for_lists(memory, turn);
        sync();
        bool rectified = of_M && (net.floor != 0 || !(terms.keep_m >= 0 && terms.gain >= 0));
        real s = kept_scale_of_rows(memory, own, !of_M ? (real)1 : rectified ? own.s : own.s * terms.keep_m, turn);
        Four factor = of_four(s), keep = of_four(rectified ? terms.keep_m : (real)1);
        Four gain = of_four(rectified ? terms.gain : (real)0), drop = of_four(rectified ? terms.eta * net.floor : (real)0);
        if (vote(of_M) >> 4 * OWN_FOUR & 15)
            change_columns<1>(memory, [=](int j, Four& weights) {
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

// What the first warp writes of a step.
DEVICE void write_traces(Cluster& memory, const Own& own, unsigned turn, int i, long long t, bool opens) {
    Net& net = memory.net;
    int active = LANE < CLUSTER ? popcount(active_in(memory.lists[turn & 1][LANE], turn)) : 0;
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

KERNEL(advance, Net* nets, int) {
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
    unsigned turn = 0;     // of the lists that are read
    if (THREAD == 0) {
        memory.traced = net.trace_y || net.trace_burst || net.trace_active || net.trace_updates, memory.learned = false;
    }
    Readers readers = readers_of(memory);
    renew(memory, turn);
    meet();
    SPENT(ON_BEGINNING)
    for (int stimulus = 0; stimulus < net.stimuli; stimulus++) {
        if (net.from_rest) {
            real unused;
            step(dynamics, 0, 0, 0, 0, 0, own.u, own.y, unused, unused);
            if (!own.exists) own.y = 0;
        }
        if (net.from_rest || stimulus == 0) publish(readers, ++turn, i, own.y);
        const real* x = global(net.X) + (size_t)stimulus * net.m;
        describe(memory, x);
        own.s = own.scale = 1, own.shift = 0, own.grown = false;
        real all_rates = 0;
        own.b = feed_forward_rows(memory, x, memory.part[~turn & 1][0]);
        SPENT(ON_WX)
        ROLLED for (int k = 0; k < hold; k++) {
            // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
            Four sums = growing ? pass<true>(memory, turn, own.gain) : pass<false>(memory, turn, 0);
            real inhibition = over_block(memory.part[turn & 1], sums, [](real a, real b) { return a + b; });
            if ((turn & ((1u << (TURN_BITS - 1)) - 1)) < 2) {  // of two turns, one at least is read here
                meet();
                renew(memory, turn);
                meet();
            }
            real new_u, new_y, beta, unused;
            long long new_c;
            step(dynamics, own.u, own.y, 0, own.b - own.s * inhibition, 0, new_u, new_y, unused, unused);
            own.u = new_u, own.y = own.exists ? new_y : (real)0, all_rates += own.y;
            publish(readers, ++turn, i, own.y);
            gate(schedule, own.y, 0, own.c, k, hold, beta, new_c);
            own.c = new_c;
            bool opens = own.exists && beta != 0, odd = false, any_odd = false;
            own.gain = 0, growing = false;
            if (vote_any(opens)) {
                if (opens) odd = update_row(memory, own);
                any_odd = vote_any(odd), growing = vote_any(own.gain != 0), memory.learned = true;
            }
            bool traced = WARP == 0 && memory.traced;
            if (any_odd) {
                update_odd_rows(memory, own, turn, odd, global(net.X) + (size_t)stimulus * net.m);
                growing = vote_any(own.gain != 0);
            }
            if (traced)
                write_traces(memory, own, turn, i, (long long)stimulus * hold + k, opens);
        }
        SPENT(ON_ALL)
        fold_rows_of_W(net, own, global(net.X) + (size_t)stimulus * net.m);
        if (growing) pass<true>(memory, turn, own.gain);
        growing = false;
        wait_for_lists(memory, turn);
        sync();
        fold_rows_of_M(memory, own, turn);
        if (net.trace_means && WARP == 0 && own.exists)
            global(net.trace_means)[(size_t)stimulus * n + i] = all_rates / (real)hold;
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
