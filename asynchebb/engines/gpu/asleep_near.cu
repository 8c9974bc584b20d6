// How sleepers are looked after where few neurons are active, and inhibition moves most of the others out of reach.
//
// Those that might become active before the hold ends, if nothing inhibited them, are **near**. Their weights from the
// slots are in shared memory, rounded down to 16 bits: enough to bound what they feel. The others need not be looked at.
// What a sleeper feels exactly is added up only once: when it wakes, when a neuron that acted on it falls asleep, and in
// the end.
//
// Per neuron: `sleeper_u` is its u at the step `since`, `sleeper_felt` the inhibition since then by those that no longer
// have slots, less what others had done (`acted`, the sum of a slot's rates) before; `row` says which row of `near` it has.
// Per row: its neuron, or −1, and what its u is at most (`above`). The rows that are not in use are listed.

#define BY_NEAR (res.near_rows > 0)

DEVICE int& since(Awake& res, int i) { return res.since[i]; }
DEVICE int neuron_of_row(Awake& res, int row) { return res.near_id[row]; }
DEVICE int rows_in_use(Awake& res) { return res.near_used; }
DEVICE int* spare_numbers(Awake& res) { return (int*)res.amounts; }

DEVICE void begin_acting(Awake& res, int slot) { res.acted[slot] = 0; }
DEVICE void go_on_acting(Awake& res, int slot) { res.acted[slot] += res.sum[slot]; }
DEVICE void move_acting(Awake& res, int to, int from) { res.acted[to] = res.acted[from]; }

// The first 16 bits of a weight; and two of them again.
DEVICE unsigned short* near_weights(Awake& res, int row) {
    return (unsigned short*)(res.tile + res.room * res.pitch) + row * res.near_pitch;
}
DEVICE unsigned short rounded_down(real weight) { return bits_of(weight) >> 16; }
DEVICE real first_of(int both) { return with_bits((unsigned)both << 16); }
DEVICE real second_of(int both) { return with_bits((unsigned)both & 0xFFFF0000u); }

// Part what room there is: at least so many slots should be spare, and the rest is for rows.
struct Parts {
    int room, pitch, near_pitch, rows;
};

DEVICE Parts parts_for(int slots) {
    int room = (slots + 7) / 8 * 8;
    room = room < SLOTS ? room : SLOTS;
    int pitch = PITCH_FOR(room), near_pitch = (room + 15) / 16 * 16;
    near_pitch = (near_pitch + 15) / 32 * 32 + 16;  // threads that look at rows use different banks
    int rows = (POOL - 64 - room * pitch) * (int)sizeof(real) / 2 / near_pitch;
    return {room, pitch, near_pitch, rows < NEAR ? rows : NEAR};
}

// All of it for slots, but for what `asleep_all.cu` needs.
DEVICE constexpr int room_if_all() {
    int room = SLOTS / 8 * 8;
    while (room > 0 && room * PITCH_FOR(room) + 64 + (int)(sizeof(Acts) / sizeof(real)) > POOL) room -= 8;
    return room;
}

// Give rows to those that are near from step k up to `end`, or to a step before it, if there are too many. Gives that step.
// If it were less than half as far, there are no rows, and all sleepers are looked at (`asleep_all.cu`); k if there is no
// room for that.
DEVICE int choose_near(Awake& res, int k, int end, int slots, int spare) {
    Net& net = res.shared.net;
    Parts parts;
    int count, horizon = end - k;
    bool fits = false;
    for (; !fits && horizon && 2 * horizon >= end - k; horizon = fits ? horizon : horizon * 7 / 8) {
        count = number_where(
            res.shared, net.n,
            [&](int i) {
                return res.row[i] < 0 && might_wake(res.dynamics, res.sleeper_u[i], (real)horizon * res.sleeper_b[i]);
            },
            [&](int i, int place) {
                if (place < NEAR) res.near_id[place] = i;
            });
        sync();
        for (int more = spare < SPARE ? SPARE : spare; more >= spare && !fits; more -= 8)
            parts = parts_for(slots + more), fits = parts.rows > 0 && count <= parts.rows;
    }
    if (!fits) {
        if (slots > room_if_all()) return k;
        parts = {room_if_all(), PITCH_FOR(room_if_all()), 0, 0}, count = 0, horizon = end - k;
    }
    int rows = parts.rows;
    for EACH(i, net.n) res.sleeper_felt[i] = 0;
    for EACH(row, rows) {
        if (row < count) {
            int i = res.near_id[row];
            res.row[i] = HAS_NEAR - row, res.above[row] = res.sleeper_u[i];
        } else
            res.near_id[row] = -1, res.unused_rows[rows - 1 - row] = row;  // the last one is the next to be used
    }
    if (THREAD == 0) {
        res.room = parts.room, res.pitch = parts.pitch, res.near_pitch = parts.near_pitch;
        res.near_rows = rows, res.near_used = count, res.unused = rows - count;
    }
    sync();
    return k + horizon;
}

// Add to what sleepers have felt what the listed slots have done to them.
OUTLINED void feel(int count) {
    HERE;
    const int AT_ONCE = 12;
    for EACH(q, count + AT_ONCE) {  // what is read too much counts for nothing
        int slot = q < count ? res.listed[q] : 0;
        res.amounts[q] = q < count ? res.acted[slot] : (real)0;
        res.listed[q] = q < count ? res.id[slot] * (int)net.stride : 0;
    }
    sync();
    int n_4 = ((int)net.n + 3) / 4;
    ROLLED for EACH(four, n_4) {
        Four felt = {0, 0, 0, 0};
        const real* P = global(net.P) + 4 * four;
        ROLLED for (int first = 0; first < count; first += AT_ONCE) {
            Four weights[AT_ONCE], amounts[AT_ONCE / 4];
            FourIds places[AT_ONCE / 4];
            UNROLL for (int j = 0; j < AT_ONCE / 4; j++) places[j] = at_once((const FourIds*)(res.listed + first) + j);
            UNROLL for (int j = 0; j < AT_ONCE; j++) weights[j] = streamed((const Four*)(P + places[j / 4].of[j % 4]));
            UNROLL for (int j = 0; j < AT_ONCE / 4; j++) amounts[j] = at_once((const Four*)(res.amounts + first) + j);
            UNROLL for (int j = 0; j < AT_ONCE; j++)
                UNROLL for (int e = 0; e < 4; e++) felt.of[e] = plus(weights[j].of[e], amounts[j / 4].of[j % 4], felt.of[e]);
        }
        UNROLL for (int e = 0; e < 4; e++)
            if (4 * four + e < net.n && res.row[4 * four + e] < 0) res.sleeper_felt[4 * four + e] += felt.of[e];
    }
    sync();
}

// The state of a neuron that has slept up to step k, and felt so much since it does.
DEVICE real u_of_sleeper(Awake& res, int i, int k, real felt) {
    int steps = k - res.since[i];
    real u = res.sleeper_u[i];
    return steps ? moved(res.dynamics, u, (real)steps * res.sleeper_b[i] - res.sleeper_s[i] * felt) : u;
}

// Neurons that have been given the next slots wake at step k: what they felt is in the tile.
DEVICE void settle_waking(Awake& res, int slots, int waking, int k) {
    int pitch = PITCH;
    ROLLED for (int w = WARP; w < waking; w += WARPS) {
        int i = res.id[slots + w], row = res.listed[w];
        real felt = 0;
        for (int slot = LANE; slot < slots; slot += 32) felt = plus(res.tile[slot * pitch + slots + w], res.acted[slot], felt);
        felt = sum_of_warp(felt);
        if (LANE == 0) {
            res.u[slots + w] = u_of_sleeper(res, i, k, res.sleeper_felt[i] + felt);
            res.near_id[row] = -1, res.unused_rows[res.unused + w] = row;
        }
    }
    sync();
    if (THREAD == 0) res.unused += waking;
}

// All who sleep, at step k.
DEVICE void settle_all(Awake& res, int slots, int k) {
    Net& net = res.shared.net;
    feel(list_where(res.shared, slots, res.listed, [&](int slot) { return res.acted[slot] != 0; }));
    for EACH(i, net.n)
        if (res.row[i] < 0) res.sleeper_u[i] = u_of_sleeper(res, i, k, res.sleeper_felt[i]);
}

// How many may fall asleep: they need rows, and each a thread.
DEVICE int room_for_tired(Awake& res) { return !BY_NEAR ? SLOTS : res.unused < THREADS ? res.unused : THREADS; }

// Those in the listed slots are about to fall asleep: they get rows. What all slots have done up to now is nothing to them.
DEVICE void settle_tired(Awake& res, int slots, int tired) {
    int pitch = PITCH;
    ROLLED for (int t = WARP; t < tired; t += WARPS) {
        int mine = res.listed[t], i = res.id[mine], row = res.unused_rows[res.unused - 1 - t];
        unsigned short* weights = near_weights(res, row);
        real done = 0;
        for (int slot = LANE; slot < slots; slot += 32) {
            real weight = res.tile[slot * pitch + mine];
            done = plus(weight, res.acted[slot], done);
            weights[slot] = rounded_down(weight);
        }
        done = sum_of_warp(done);
        if (LANE == 0) {
            res.sleeper_felt[i] = -done, res.near_id[row] = i;
            res.above[row] = res.u[mine];
        }
    }
}

// What `row` then says of one of them.
DEVICE int row_of_tired(Awake& res, int t) { return HAS_NEAR - res.unused_rows[res.unused - 1 - t]; }

// They sleep, and what they have done is added to what all sleepers have felt.
DEVICE void settle_others(Awake& res, int tired) {
    int listed = (int)THREAD < tired ? res.listed[THREAD] : 0;
    feel(tired);
    if ((int)THREAD < tired) res.listed[THREAD] = listed;
    if (THREAD == 0) {
        res.unused -= tired;
        int used = res.near_rows - res.unused;
        res.near_used = res.near_used < used ? used : res.near_used;
    }
    sync();
}

DEVICE void move_near(Awake& res, const int* to, const int* from, int moves) {
    for EACH(row, res.near_used) {
        unsigned short* weights = near_weights(res, row);
        move_several(moves, [&](int t) { return weights + to[t]; }, [&](int t) { return weights + from[t]; });
    }
}

// Find those that might become active in the next block: how many, by its length (`counts`), and which (`unsafe`, by row).
// So many steps were taken since the last time. Two threads share a row.
OUTLINED void check_near(int slots, int k, int steps) {
    HERE;
    const int PAIRS = THREADS / 2;
    real dynamics[DYNAMICS_CONSTANTS];
    UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = res.dynamics[j];
    Counts counts = {0, 0};
    int half = THREAD % 2, used = res.near_used;
    sync();
    ROLLED for (int first_row = 0; first_row < used; first_row += PAIRS) {
        int row = first_row + THREAD / 2 < used ? first_row + THREAD / 2 : used - 1;
        bool is_first = first_row + THREAD / 2 < used && half == 0;
        const unsigned short* near = near_weights(res, row);
        int id = res.near_id[row], i = id < 0 ? 0 : id;
        real u = res.above[row], b = res.sleeper_b[i], s = res.sleeper_s[i], sum[2] = {0, 0}, lowest[2] = {0, 0};
        bool moves = res.since[i] < k;
        BY_TWO for (int slot = 8 * half; slot < slots; slot += 16) {
            FourIds weights = at_once((const FourIds*)(near + slot));
            Four sums[2], floors[2];
            UNROLL for (int j = 0; j < 2; j++) sums[j] = at_once((const Four*)(res.sum + slot) + j);
            UNROLL for (int j = 0; j < 2; j++) floors[j] = at_once((const Four*)(res.floors[0] + slot) + j);
            UNROLL for (int j = 0; j < 4; j++) {
                real first = first_of(weights.of[j]), second = second_of(weights.of[j]);
                sum[0] = plus(first, sums[j / 2].of[j % 2 * 2], sum[0]);
                sum[1] = plus(second, sums[j / 2].of[j % 2 * 2 + 1], sum[1]);
                lowest[0] = plus(first, floors[j / 2].of[j % 2 * 2], lowest[0]);
                lowest[1] = plus(second, floors[j / 2].of[j % 2 * 2 + 1], lowest[1]);
            }
        }
        real felt = sum[0] + sum[1], at_least = lowest[0] + lowest[1];
        felt += shuffle_xor(felt, 1), at_least += shuffle_xor(at_least, 1);
        if (moves) u = moved(dynamics, u, (real)steps * b - s * felt);
        unsigned unsafe = unsafe_for(dynamics, u, b, s * at_least, s * at_least);
        unsafe = id < 0 || !is_first ? 0 : unsafe;
        count_unsafe(counts, unsafe);
        sync_warp();  // both have read what one of them writes
        if (is_first) res.above[row] = u, res.unsafe[row] = unsafe;
    }
    give_counts(res, counts);
}
