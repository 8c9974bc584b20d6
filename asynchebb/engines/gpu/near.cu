// Rows for those that may become active before a hold ends, columns for those that are.
//
// A silent neuron moves by its drive, which is at most b: most cannot become active before the hold ends. They are **far**,
// and move once, in the end. The others are **near**, and have rows. Some of these are **followed** step by step: those that
// are active or soon may be, one by each thread. The rest is **idle**: it is looked after now and then, and moved by what was
// felt meanwhile. Who might become active before the next time changes places with a silent one that is followed.
//
// Of the weights to these rows, a column is at hand for each active neuron. It is fetched when the neuron becomes active, and
// kept until its place is needed. Followed rows have theirs in registers: a team of four threads shares four rows, and each
// has a quarter of the columns, the last ones in shared memory if they are too many (the tile). So a rate that is read serves
// four rows, and a step is a sweep over the columns, some shuffles and a barrier. Each thread of a team numbers its rows from
// its own on, so that shuffles need no choices. Idle rows have theirs in shared memory.
#define TEAM_OF(thread) ((int)((unsigned)(thread) / 32 * 8 + (unsigned)(thread) % 8))
#define MINE_OF(thread) ((int)((unsigned)(thread) % 32 / 8))    // its number in the team
#define TEAM_ROW_OF(thread, r) (4 * TEAM_OF(thread) + (MINE_OF(thread) ^ (r)))  // its rows r = 0, …, 3,
#define ROW_OF(thread) TEAM_ROW_OF(thread, 0)                   // of which it follows the first
#define ROWS (THREADS + IDLE)
#define GROUP 16                            // columns, four for each thread of a team
#define GROUPS (IN_REGISTERS / GROUP)       // of those in registers,
#define FEWEST (GROUPS < 4 ? GROUPS : 4)    // at least so many of which are used
#define ALL_GROUPS (GROUPS + (MOST > IN_REGISTERS))  // one more for all columns that are in the tile
#define FEW_LEFT (GROUPS > 8)               // of the registers, for others than weights
#define RATES (MOST + GROUP)
#define FLAG (RATES - GROUP)                // behind the rates: not 0 if a neuron needs a column, or a rate fell below its
#define ODD (FLAG + 1)                      // floor, or if a row is to be rectified
#define NO_COLUMN (FLAG + 4)                // for the rates of neurons without columns,
#define NO_ONE (FLAG + 8)                   // and of rows without neurons
#define FORESEEN 64                         // steps: who will be active by then gets a column early, or keeps it
#define SOON 48                             // steps: who might be active by then is followed from the start
#define LENGTHS 4                           // of the time up to which idle neurons are not looked after: 96, 32, 8 or 1 steps
#define LENGTH(l) ((l) == 0 ? 96 : (l) == 1 ? 32 : (l) == 2 ? 8 : 1)
#define FEW_EXCHANGED 16                    // rows for which it pays to look after idle ones less often
#define FLOORS (2 * RATES)                  // where they are among the rates: see `look_after`
#define NO_FLOOR ((real)-1e38)              // no rate is below that
#define FLOOR ((real)0.8)                   // so much of a rate,
#define FALLING 64                          // after so many steps in which it falls as it does now
#define SUMMED 16                           // columns that act on far neurons, at a time
#define SHARERS (THREADS > 128 ? THREADS / 128 : 1)  // teams that share these
// Where neurons are too many for the columns, there may be so many more of these, and fewer idle rows. Columns of idle rows
// have an odd pitch: threads that exchange rows use different banks.
#define MOST (IDLE && COLUMNS < THREADS ? (COLUMNS + GROUP < THREADS ? COLUMNS + GROUP : THREADS) : COLUMNS)
#define TILE(columns) (((columns) - IN_REGISTERS) * THREADS)
#define POOL (TILE(COLUMNS) + COLUMNS * (IDLE | 1))
#define PITCH(columns) ((columns) == COLUMNS ? (IDLE | 1) : ((POOL - TILE(columns)) / (columns) - 1) | 1)
#define PASSES ((IDLE + THREADS - 1) / THREADS)  // in which a block goes through idle rows
#define MASKS ((PASSES > 1 ? PASSES : 1) * WARPS)
#define FAR (-1)

struct Near {  // in shared memory
    Shared shared;
    alignas(16) real y[3 * RATES];          // of the columns: before and after a step, and their FLOORS
    alignas(16) real acts[RATES];           // the sums of these since idle neurons were moved
    alignas(16) int id[ROWS];               // the neuron of a row: first the followed ones; or −1
    alignas(4) unsigned char grown[ROWS];   // has the row grown?
    alignas(8) short partner[THREADS], exchanging[THREADS];  // the idle row that takes the place of a followed one, or −1
    short row[NEURONS];                     // of a neuron; or it is FAR
    short column[NEURONS], owner[MOST];     // of a neuron, or −1; and the other way round
    // Rows of which something is so, a bit each; the rows whose columns come and go, and where.
    unsigned wanted[MASKS], others[MASKS], unused[MASKS];
    unsigned silent[WARPS], going[WARPS];   // places whose neurons are not active; whose columns come and go
    int counts[WARPS][LENGTHS];
    unsigned kinds[(NEURONS + THREADS - 1) / THREADS * WARPS];  // how many of 32 neurons are of each kind, a byte each
    short coming[GROUP], leaving[GROUP], places[GROUP];
    real sums[NEURONS], inhibition[THREADS];  // the sum of a neuron's rates; M̂ y of a followed row at the last step
    real felt[IDLE + 1];                    // what an idle row felt of columns that are gone; or at least feels
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    Shown shown;
    // Has a row to be rectified? Places of columns, and rows, that are used; the step up to which idle neurons are moved; and
    // see `Acting`.
    int odd, columns, rows, looked, kept_columns;
    unsigned char is_kept[NEURONS];
    // Columns on their way to followed rows; those of them that are not in registers, m̂_ij at (j − IN_REGISTERS) * THREADS + i;
    // and behind these, those of idle rows, at j * pitch + i − THREADS. There are places for `most` columns.
    int most, pitch;
    alignas(16) real fetched[GROUP * THREADS], pool[POOL + 3];  // four are written at a time
};
typedef Near Memory;
static_assert(COLUMNS % GROUP == 0 && MOST % GROUP == 0 && MOST <= THREADS, "");  // whole groups change places
static_assert(3 * ((NEURONS + THREADS - 1) / THREADS) <= 64, "");  // `kinds` has room for three bits each
// Where columns are, there is room for what `Acting` and `move_far` list.
static_assert(GROUP * THREADS + POOL >= (2 + SHARERS) * NEURONS + 2 * SUMMED * SHARERS + 2 * AT_MOST_KEPT, "");

#define HERE Near& res = *(Near*)SHARED_MEMORY; Net& net = res.shared.net

// Have the constants at hand.
DEVICE void keep_constants(Near& res) {
    Net& net = res.shared.net;
    for EACH(j, DYNAMICS_CONSTANTS) res.dynamics[j] = net.dynamics[j];
    for EACH(j, SCHEDULE_CONSTANTS) res.schedule[j] = net.schedule[j];
    for EACH(j, RULE_CONSTANTS) res.rule[j] = net.rule[j];
    for EACH(i, NEURONS) res.is_kept[i] = 0;
    if (THREAD == 0) res.kept_columns = 0;
    sync();
    if (THREAD == 0) net.dynamics = res.dynamics, net.schedule = res.schedule, net.rule = res.rule;
    sync();
}

DEVICE real* idle_weights(Near& res) { return res.pool + TILE(res.most); }

DEVICE Acting acting() {  // where columns are, which no one uses then
    HERE;
    const int LISTED_AT_MOST = NEURONS + 16, KEPT = AT_MOST_KEPT + 4;
    real *rates = res.fetched + LISTED_AT_MOST, *owners = rates + LISTED_AT_MOST, *columns = owners + 2 * KEPT;
    real* end = res.pool + POOL;
    int pitch = ((int)net.n + 3) / 4 * 4, room = (int)(end - columns) / pitch;
    room = room < AT_MOST_KEPT ? room : AT_MOST_KEPT;
    return {(FourIds*)res.fetched, (Four*)rates, columns, room, pitch, res.kept_columns, (int*)owners, (Four*)(owners + KEPT),
            res.is_kept, res.shared};
}

// Give rows to those that may become active from step k up to `end`, or up to a step before that, if they are too many. First
// to those that are active; to those that have to be followed, since their gates may open; to those that are within reach; and
// to the others. Gives that step; k if there are too many.
OUTLINED int choose(int k) {
    HERE;
    enum { IS_ACTIVE, IS_OPEN, IN_REACH, IS_NEAR, IS_FAR };
    int n = net.n, end = net.hold, shortest = end - k < WORTHWHILE ? end - k : WORTHWHILE;
    int words = (n + THREADS - 1) / THREADS * WARPS, active, rows, first[IS_FAR], most, pitch, most_rows;
    unsigned long long kinds;  // of this thread's neurons, three bits each
    bool ends_early;
    for (int horizon = end - k; true; horizon = horizon * 7 / 8) {
        horizon = horizon > shortest ? horizon : shortest;
        end = k + horizon, ends_early = false, kinds = 0;
        int reach = SOON < horizon ? SOON : horizon;
        auto kind_of = [&](int i) {
            if (ROW(Y)[i] != 0) return (int)IS_ACTIVE;
            bool opens;
            real u = ROW(U)[i], a = ROW(A)[i], b = ROW(B)[i];
            bool sleeps = may_sleep(net, u, a, COUNT(C)[i], k, end, opens);
            if (!sleeps) return (int)IS_OPEN;
            if (might_wake(res.dynamics, u, (real)reach * b)) return (int)(opens ? IS_OPEN : IN_REACH);
            if (might_wake(res.dynamics, u, (real)horizon * b)) return (int)(opens ? IS_OPEN : IS_NEAR);
            TRUTH(OPENED)[i] = opens, ends_early |= opens && odd_when_silent(net, a, ROW(SCALE)[i], ROW(S)[i]);
            return (int)IS_FAR;
        };
        sync();
        ROLLED for (int word = WARP, i = THREAD, shift = 0; word < words; word += WARPS, i += THREADS, shift += 3) {
            int kind = i < n ? kind_of(i) : (int)IS_FAR;
            unsigned counts = 0;
            UNROLL for (int of = IS_ACTIVE; of < IS_FAR; of++) counts |= popcount(vote(kind == of)) << 8 * of;
            if (LANE == 0) res.kinds[word] = counts;
            kinds |= (unsigned long long)kind << shift;
        }
        sync();
        unsigned even = 0, odd = 0;  // how many there are of two kinds each
        ROLLED for (int word = 0; word < words; word++)
            even += res.kinds[word] & 0xFF00FF, odd += res.kinds[word] >> 8 & 0xFF00FF;
        first[IS_ACTIVE] = 0, first[IS_OPEN] = active = even & 0xFFFF, first[IN_REACH] = active + (odd & 0xFFFF);
        first[IS_NEAR] = first[IN_REACH] + (even >> 16), rows = first[IS_NEAR] + (odd >> 16);
        bool crowded = active > COLUMNS - GROUP && MOST > COLUMNS;
        most = crowded ? MOST : COLUMNS, pitch = PITCH(COLUMNS), most_rows = ROWS;
        if (crowded) pitch = PITCH(MOST), most_rows = THREADS + (pitch - 1 < IDLE ? pitch - 1 : IDLE);
        if (active > MOST || active > THREADS || (IDLE && first[IN_REACH] > THREADS)) return k;
        if (rows <= most_rows || horizon == shortest) break;
    }
    if (rows > most_rows) return k;
    unsigned even = first[IS_ACTIVE] | first[IN_REACH] << 16, odd = first[IS_OPEN] | first[IS_NEAR] << 16;  // the next rows
    ROLLED for (int word = 0, i = THREAD; word < words; i += THREADS, kinds >>= 3) {
        unsigned next[2];
        ROLLED for (int warp = 0; warp < WARPS; warp++, word++) {
            if (warp == WARP) next[0] = even, next[1] = odd;
            even += res.kinds[word] & 0xFF00FF, odd += res.kinds[word] >> 8 & 0xFF00FF;
        }
        int kind = kinds & 7, row = FAR;
        UNROLL for (int of = IS_ACTIVE; of < IS_FAR; of++) {
            unsigned alike = vote(kind == of);
            if (kind == of) row = (next[of % 2] >> of / 2 * 16 & 0xFFFF) + popcount(alike & ((1u << LANE) - 1));
        }
        if (i < n) {
            res.row[i] = row, res.column[i] = -1, res.sums[i] = 0;
            if (row != FAR) res.id[row] = i, TRUTH(OPENED)[i] = 0;
        }
    }
    if (sync_or(ends_early)) {  // all neurons take the last step
        end -= 1;
        for EACH(i, n) TRUTH(OPENED)[i] = 0;
    }
    for EACH(row, ROWS) {
        if (row >= rows) res.id[row] = -1;
        if (row < active) res.column[res.id[row]] = row;
        res.grown[row] = 0;
    }
    for EACH(place, most) res.owner[place] = place < active ? res.id[place] : -1;
    for EACH(j, 3 * RATES) res.y[j] = j < active ? ROW(Y)[res.id[j]] : (real)0;
    for EACH(j, RATES) res.acts[j] = 0;
    for EACH(j, IDLE) res.felt[j] = 0;
    for EACH(j, (GROUP * THREADS + POOL + 3) / 4) ((Four*)res.fetched)[j] = {0, 0, 0, 0};  // used or not
    if (THREAD == 0) {
        res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0, res.odd = 0;
        res.columns = active, res.rows = rows, res.looked = k, res.most = most, res.pitch = pitch;
    }
    sync();
    return end;
}
