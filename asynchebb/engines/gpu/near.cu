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
#define TEAM_OF(thread) ((thread) / 32 * 8 + (thread) % 8)
#define MINE_OF(thread) ((thread) % 32 / 8)                     // its number in the team
#define TEAM_ROW_OF(thread, r) (4 * TEAM_OF(thread) + (MINE_OF(thread) ^ (r)))  // its rows r = 0, …, 3,
#define ROW_OF(thread) TEAM_ROW_OF(thread, 0)                   // of which it follows the first
#define ROWS (THREADS + IDLE)
#define GROUP 16                            // columns, four for each thread of a team
#define GROUPS (IN_REGISTERS / GROUP)       // of those in registers,
#define FEWEST (GROUPS < 4 ? GROUPS : 4)    // at least so many of which are used
#define FEW_LEFT (GROUPS > 8)               // of the registers, for others than weights
#define RATES ((COLUMNS + GROUP - 1) / GROUP * GROUP + GROUP)
#define FLAG (RATES - GROUP)                // behind the rates: not 0 if a neuron needs a column, or
#define FELL (FLAG + 1)                     // if a rate fell below its floor, or
#define ODD (FLAG + 2)                      // if a row is to be rectified
#define NO_ONE (FLAG + 4)                   // for the rates of rows without neurons
#define FORESEEN 64                         // steps: who will be active by then gets a column early, or keeps it
#define SOON 24                             // steps: who might be active by then is followed from the start
#define LENGTHS 6                           // of the time up to which idle neurons are not looked after: 64, 32, 16, 8, 4 or 1 steps
#define LENGTH(l) ((l) == LENGTHS - 1 ? 1 : 64 >> (l))
#define FEW_EXCHANGED 16                    // rows for which it pays to look after idle ones less often
#define FLOORS (2 * RATES)                  // where they are among the rates: see `look_after`
#define FLOOR ((real)0.8)                   // so much of a rate,
#define FALLING 64                          // after so many steps in which it falls as it does now
#define SUMMED 16                           // columns that act on far neurons, at a time
#define SHARERS (THREADS > 128 ? THREADS / 128 : 1)  // teams that share these
#define PITCH (IDLE + 1)                    // threads that exchange rows use different banks
#define PASSES ((IDLE + THREADS - 1) / THREADS)  // in which a block goes through idle rows
#define MASKS ((PASSES > 1 ? PASSES : 1) * WARPS)
#define FAR (-1)

struct alignas(2 * sizeof(real)) Two { real of[2]; };

struct Near {  // in shared memory
    Shared shared;
    alignas(16) real y[3 * RATES];          // of the columns: before and after a step, and their FLOORS
    alignas(16) real acts[RATES];           // the sums of these since idle neurons were moved
    alignas(16) int id[ROWS];               // the neuron of a row: first the followed ones; or −1
    alignas(4) unsigned char grown[ROWS];   // has the row grown?
    alignas(8) short partner[THREADS], exchanging[THREADS];  // the idle row that takes the place of a followed one, or −1
    short row[NEURONS];                     // of a neuron; or it is FAR
    short column[NEURONS], owner[COLUMNS];  // of a neuron, or −1; and the other way round
    unsigned char kept[COLUMNS];            // is its neuron active (2), or will be soon (1)?
    // Rows of which something is so, a bit each; the rows whose columns come and go, and where.
    unsigned wanted[MASKS], others[MASKS], unused[MASKS];
    int counts[WARPS][LENGTHS];
    short coming[GROUP], leaving[GROUP], places[GROUP];
    real sums[NEURONS], inhibition[THREADS];  // the sum of a neuron's rates; M̂ y of a followed row at the last step
    real least[IDLE + 1];                   // and what it is at least, of an idle row
    real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS], rule[RULE_CONSTANTS];
    Shown shown;
    int odd, columns, rows, looked, kept_columns;  // has a row to be rectified? places of columns, and rows, that are used;
                                            // the step up to which idle neurons are moved; and see `Acting`
    unsigned char is_kept[NEURONS];
    // Columns on their way to followed rows; those of them that are not in registers, m̂_ij at (j − IN_REGISTERS) * THREADS + i;
    // and those of idle rows, at j * PITCH + i − THREADS.
    alignas(16) real fetched[GROUP * THREADS], tile[(COLUMNS - IN_REGISTERS) * THREADS + 4];
    alignas(16) real idle[COLUMNS * PITCH + 3];  // four are written at a time
};
typedef Near Memory;
// Where columns are, there is room for what `Acting` and `move_far` list.
static_assert((GROUP + COLUMNS - IN_REGISTERS) * THREADS + COLUMNS * PITCH >=
                  (2 + SHARERS) * NEURONS + 2 * SUMMED * SHARERS + 2 * AT_MOST_KEPT, "");

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

DEVICE Acting acting() {  // where columns are, which no one uses then
    HERE;
    const int LISTED_AT_MOST = NEURONS + 16, KEPT = AT_MOST_KEPT + 4;
    real *rates = res.fetched + LISTED_AT_MOST, *owners = rates + LISTED_AT_MOST, *columns = owners + 2 * KEPT;
    real* end = res.idle + COLUMNS * PITCH;
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
    int n = net.n, end = net.hold, shortest = end - k < WORTHWHILE ? end - k : WORTHWHILE, rows = 0, active = 0, followed = 0;
    bool ends_early = false;
    enum { IS_ACTIVE, IS_OPEN, IN_REACH, IS_NEAR, IS_FAR };
    for (int horizon = end - k; true; horizon = horizon * 7 / 8) {
        horizon = horizon > shortest ? horizon : shortest;
        end = k + horizon, rows = 0, ends_early = false;
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
        ROLLED for (int kind = IS_ACTIVE; kind <= IS_NEAR; kind++) {
            int before = rows;
            rows += number_where(
                res.shared, n,
                [&](int i) {
                    if (kind == IS_ACTIVE) {
                        res.column[i] = -1, res.sums[i] = 0, TRUTH(OPENED)[i] = 0;
                        res.row[i] = FAR - kind_of(i) - 1;
                    }
                    return res.row[i] == FAR - kind - 1;
                },
                [&](int i, int place) {
                    if (before + place < ROWS) res.id[before + place] = i, res.row[i] = before + place;
                });
            if (kind == IS_ACTIVE) active = rows;
            if (kind == IS_OPEN) followed = rows;
            sync();
        }
        if (active > COLUMNS || active > THREADS || (IDLE && followed > THREADS)) return k;
        if (rows <= ROWS || horizon == shortest) break;
    }
    if (rows > ROWS) return k;
    if (sync_or(ends_early)) {  // all neurons take the last step
        end -= 1;
        for EACH(i, n) TRUTH(OPENED)[i] = 0;
    }
    for EACH(i, n)
        if (res.row[i] < 0) res.row[i] = FAR;
    for EACH(row, ROWS) {
        if (row >= rows) res.id[row] = -1;
        if (row < active) res.column[res.id[row]] = row;
        res.grown[row] = 0;
    }
    for EACH(place, COLUMNS) res.owner[place] = place < active ? res.id[place] : -1;
    for EACH(j, 3 * RATES) res.y[j] = j < active ? ROW(Y)[res.id[j]] : (real)0;
    for EACH(j, RATES) res.acts[j] = 0;
    for EACH(j, (res.idle + COLUMNS * PITCH - res.fetched + 3) / 4) ((Four*)res.fetched)[j] = {0, 0, 0, 0};  // used or not
    if (THREAD == 0) {
        res.shared.active[0] = res.shared.active[1] = res.shared.active[2] = 0, res.odd = 0;
        res.columns = active, res.rows = rows, res.looked = k;
    }
    sync();
    return end;
}
