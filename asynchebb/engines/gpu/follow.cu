// Steps of the followed neurons, and what has to be done between them.

// Write down what is asked for of this step.
DEVICE void trace(Net& net, Near& res, int i, real y, bool opened, int k, long long t) {
    if (net.trace_y && i >= 0) global(net.trace_y)[t * net.n + i] = y;
    if (net.trace_burst && i >= 0) global(net.trace_burst)[t * net.n + i] = opened;
    int more_than_0 = popcount(vote(y > 0)), not_0 = popcount(vote(y != 0));
    if (net.trace_active && LANE == 0 && more_than_0) add_to(&global(net.trace_active)[t], more_than_0);
    if (net.trace_updates && LANE == 0 && not_0) add_to(&res.shared.active[k % 3], not_0);
}

// Followed neurons, while they take steps.
template <bool TRACED> struct Followed {
    Near& res;
    Net& net;
    Weights m;
    Own own;
    int thread, id, k, now, columns;  // `now` says which rates are those before the next step
    bool opened, odd, flag;  // Is its neuron's gate open? Has its row to be rectified? Was a flag up?
    real room, one;

    MEMBER Followed(Near& res, int k) : res(res), net(res.shared.net), k(k), now(0) {
        UNROLL for (int g = 0; g < GROUPS; g++)
            UNROLL for (int e = 0; e < 4; e++)
                UNROLL for (int r = 0; r < 4; r++) m.of[g][e][r] = 0;
        fetch_groups<0>(res, m);
        room = net.floor == 0 ? 0 : -1, one = net.hold > 0;  // which is 1: a constant would be made anew each time
        opened = odd = flag = false;
        thread = THREAD;
        read();
    }

    MEMBER void read() { id = res.id[ROW_OF(thread)], own = own_of(res, id), columns = res.columns; }
    MEMBER void keep() { ::keep(res, ROW_OF(thread), id, own); }
    MEMBER bool wants_column() { return own.column == NO_COLUMN && own.y != 0; }
    MEMBER bool is_flag_up() { return one_at_once(res.y + now + FLAG) != 0; }

    // Set the floors under all rates. Gives what this neuron feels if all are there.
    MEMBER real set_floors() {
        for EACH(place, columns) {
            real y = res.y[now + place], change = y - res.y[RATES - now + place];
            real floor = FLOOR * y + FALLING * (change < 0 ? change : (real)0);
            res.y[FLOORS + place] = floor > 0 ? floor : (real)0;
        }
        sync();
        Rates rates;
        real part[4], unused;
        read_rates<ALL_GROUPS>(res.y + FLOORS + 4 * MINE_OF(thread), rates);
        sweep<ALL_GROUPS, false>(res, thread, m, rates, FLOORS, columns, part, unused);
        return add_parts(part);
    }

    // What was learned at the last step, but for M̂: by how much its rows grow.
    // W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M
    MEMBER void learn(real* gains) {
        real gain = 0;
        if (opened & !odd) {
            Terms terms = terms_of_update(res.rule, own.y, ROW(A)[id]);
            real scale = ROW(SCALE)[id] * terms.keep_w;
            ROW(A)[id] = terms.a, ROW(SCALE)[id] = scale, ROW(SHIFT)[id] = terms.keep_w * ROW(SHIFT)[id] + terms.gain;
            own.b = terms.keep_w * own.b + terms.gain * net.x_x;
            own.s *= terms.keep_m;
            own.scale = fmin(scale, own.s);
            gain = terms.gain * reciprocal(own.s);
            if (gain != 0) res.grown[ROW_OF(thread)] = 1, TRUTH(GROWN)[id] = 1;
            if (TRACED && net.trace_updates)
                add_to(&global(net.trace_updates)[res.shown.hold_start + k - 1],
                       synapses_changed(net, terms, own.y, res.shared.pixels, (int)res.shared.active[(k - 1) % 3]));
        }
        gains[0] = gain;
        UNROLL for (int r = 1; r < 4; r++) gains[r] = shuffle_xor(gain, 8 * r);
    }

    // Learn what is left from the last step. What is odd is left to `update`.
    MEMBER void finish() {
        if (!vote_any(opened)) return;
        real gains[4];
        Rates rates;
        learn(gains);
        read_rates<ALL_GROUPS>(res.y + now + 4 * MINE_OF(thread), rates);
        grow<ALL_GROUPS>(res, thread, m, rates, now, columns, gains);
        if (opened & odd) TRUTH(OPENED)[id] = 1;
        opened = false;
    }

    // Take steps up to this one, or until a flag is up.
    template <int USED> MEMBER void take_steps_with(int until) {
        int mine = now + 4 * MINE_OF(thread);  // where the rates of its columns are
        do {
            Rates rates;
            real part[4], gains[4], squares, beta, new_u, new_y, unused, *next = res.y + (RATES - now);
            real dynamics[DYNAMICS_CONSTANTS], schedule[SCHEDULE_CONSTANTS];
            long long new_c;
            // What does not need the rates is done while they are on their way.
            flag = is_flag_up();
            read_rates<USED>(res.y + mine, rates);
            Count c(own.c, to_real(own.c));
            real* place = next + hidden(own.column);
            bool learns = vote_any(opened);
            if (FEW_LEFT && (flag | learns)) break;
            if (!FEW_LEFT && learns) {
                if (flag) break;
                learn(gains);
                sweep<USED, true>(res, thread, m, rates, now, columns, part, squares);
                // (M̂ + g yᵀ) y = M̂ y + g yᵀy
                UNROLL for (int r = 0; r < 4; r++) part[r] = plus(gains[r], squares, part[r]);
                grow<USED>(res, thread, m, rates, now, columns, gains);
            } else
                sweep<USED, false>(res, thread, m, rates, now, columns, part, squares);
            if (!FEW_LEFT && flag) break;  // asked for only now, when it is known
            // u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold). Constants would take registers all the time.
            UNROLL for (int j = 0; j < DYNAMICS_CONSTANTS; j++) dynamics[j] = one_at_once(res.dynamics + j);
            UNROLL for (int j = 0; j < SCHEDULE_CONSTANTS; j++) schedule[j] = one_at_once(res.schedule + j);
            sync_warp();  // or it would see to it before each shuffle
            own.felt = add_parts(part);
            step(dynamics, own.u, 0, 0, own.b - own.s * own.felt, 0, new_u, new_y, unused, unused);
            *place = new_y;
            own.sum += own.y, own.u = new_u, own.y = new_y;
            write_shared_if(own.is_low(), next + FLAG, one);
            gate(schedule, new_y, 0, c, k, net.hold, beta, new_c);
            own.c = new_c;
            opened = (own.column != NO_ONE) & (beta != 0);
            odd = false;
            if (opened) {
                odd = may_be_odd(terms_of_update(res.rule, new_y, ROW(A)[id < 0 ? 0 : id]), own.scale, room);
                write_shared_if(odd, next + FLAG, one), write_shared_if(odd, next + ODD, one);
            }
            if (TRACED) {
                trace(net, res, id, id < 0 ? (real)0 : own.y, opened, k, res.shown.hold_start + k);
                if (THREAD == 0) res.shared.active[(k + 1) % 3] = 0;  // no one reads or adds to it now
            }
            k++, now = RATES - now, mine = hidden(now + 4 * MINE_OF(thread));
            sync();
        } while (k != until);
    }

    // With as few groups of columns as are enough.
    template <int USED> MEMBER void take_steps(int until) {
        if constexpr (USED > FEWEST && !FEW_LEFT && (!TRACED || USED > GROUPS))
            if (columns <= GROUP * (USED - 1)) return take_steps<USED - 1>(until);
        if (FEW_LEFT) finish();  // there are no registers to do that meanwhile
        take_steps_with<USED>(until);
    }
};

// Run the neurons that have rows from step k up to `end`; or up to a step at which too many are active, or a row has to be
// rectified: then `odd` says that gates are still open. Gives the step that was reached.
template <bool TRACED> OUTLINED int take_steps(int k, int end) {
    HERE;
    Followed<TRACED> all(res, k);
    SPENT(ON_LOADING)
    int until = IDLE ? k : end;
    while (true) {
        if (all.is_flag_up()) {
            SPENT(ON_STEPS)
            real* flags = res.y + all.now;
            bool odd = flags[ODD] != 0, fell = sync_or(all.own.has_column() && all.own.is_low());
            bool wants = sync_or(all.wants_column());
            if (THREAD == 0) flags[FLAG] = flags[ODD] = 0, res.odd |= odd;
            if (odd) end = all.k;
            if (odd | fell) until = all.k;
            if (wants) {
                all.keep();
                sync();
                if (!fetch(res, all.m, all.now)) {
                    if (all.opened) TRUTH(OPENED)[all.id] = 1, all.opened = false;
                    if (THREAD == 0) res.odd = 1;
                    until = end = all.k;
                }
                all.read();
            }
            SPENT(ON_WAKING)
        }
        if (all.k == until) {
            all.finish();
            if (all.k == end) break;
            SPENT(ON_STEPS)
            all.keep();
            real least = all.set_floors();
            Looked looked = look_after(all.k, end, least);
            if (looked.exchanged) exchange<0>(res, hidden(THREAD), all.m);
            until = all.k + looked.steps, end = looked.steps ? end : all.k;
            all.read();
            SPENT(ON_SLEEPERS)
            if (all.k == end) break;
        }
        all.template take_steps<ALL_GROUPS>(until);
    }
    SPENT(ON_STEPS)
    all.keep();
    if (IDLE) move_idle<false>(all.k);
    const Weights& m = all.m;
    int columns = all.columns, thread = hidden(THREAD);
    k = all.k;
    TeamRows rows = rows_of_team(res, thread);
    if (vote_any(rows.any)) {
        UNROLL for (int g = 0; g < GROUPS; g++)
            UNROLL for (int e = 0; e < 4; e++) {
                int owner = res.owner[GROUP * g + 4 * MINE_OF(thread) + e];
                if (owner >= 0) put_back(res, m.of[g][e], owner, rows);
            }
        ROLLED for (int first = IN_REGISTERS; first < columns; first += GROUP)
            UNROLL for (int e = 0; e < 4; e++) {
                int place = first + 4 * MINE_OF(thread) + e, owner = place < res.most ? res.owner[place] : -1;
                if (owner >= 0) put_back(res, in_tile(res, thread, place)->of, owner, rows);
            }
    }
    if (IDLE) put_back_idle(res, columns, [&](int q) { return res.owner[q]; }, [&](int q) { return q; });
    sync();
    return k;
}

// Far neurons, after so many steps: what they felt is the sum of what each active neuron did.
OUTLINED void move_far(int steps) {
    HERE;
    int n = net.n, n_4 = (n + 3) / 4, stride = net.stride, team = THREAD / 128;
    int* listed = (int*)res.fetched;
    real *sums = res.fetched + NEURONS + SUMMED * SHARERS, *all_felt = sums + NEURONS + SUMMED * SHARERS;
    int count = number_where(
        res.shared, n, [&](int i) { return res.sums[i] != 0; },
        [&](int i, int place) { listed[place] = i * stride, sums[place] = res.sums[i]; });
    // What is read too much counts for nothing; to choose between weights would wait for each of them.
    for EACH(q, SUMMED * SHARERS) sums[count + q] = 0, listed[count + q] = 0;
    sync();
    ROLLED for (int four = THREAD % 128; four < n_4; four += THREADS < 128 ? THREADS : 128) {
        Four felt = {0, 0, 0, 0};
        const real* P = global(net.P) + 4 * four;
        ROLLED for (int first = team * SUMMED; first < count; first += SUMMED * SHARERS) {
            Four weights[SUMMED], some[SUMMED / 4];
            FourIds places[SUMMED / 4];
            UNROLL for (int j = 0; j < SUMMED / 4; j++) places[j] = at_once((const FourIds*)(listed + first) + j);
            UNROLL for (int j = 0; j < SUMMED; j++) weights[j] = streamed((const Four*)(P + places[j / 4].of[j % 4]));
            UNROLL for (int j = 0; j < SUMMED / 4; j++) some[j] = at_once((const Four*)(sums + first) + j);
            UNROLL for (int j = 0; j < SUMMED; j++)
                UNROLL for (int e = 0; e < 4; e++) felt.of[e] = plus(weights[j].of[e], some[j / 4].of[j % 4], felt.of[e]);
        }
        *(Four*)(all_felt + team * NEURONS + 4 * four) = felt;
    }
    sync();
    for EACH(i, n)
        if (res.row[i] == FAR) {
            real felt = 0;
            UNROLL for (int t = 0; t < SHARERS; t++) felt += all_felt[t * NEURONS + i];
            ROW(U)[i] = moved(res.dynamics, ROW(U)[i], (real)steps * ROW(B)[i] - ROW(S)[i] * felt);
        }
}

// Run few neurons apart from step k on. Gives the step that was reached: k if there are too many of them. `shown` says how to
// go on from there.
OUTLINED int run_few(int k) {
    HERE;
    int end = choose(k), start = k;
    SPENT(ON_CHOOSING)
    if (end > k) {
        bool traced = net.trace_active || net.trace_updates || net.trace_y || net.trace_burst;
        if (net.trace_means)  // the sum is of rates before each step
            for EACH(i, net.n) ROW(ALL_RATES)[i] -= ROW(Y)[i];
        k = traced ? take_steps<true>(k, end) : take_steps<false>(k, end);
        SPENT(ON_STORING)
        if (net.trace_means)
            for EACH(i, net.n) ROW(ALL_RATES)[i] += ROW(Y)[i] + res.sums[i];
        bool odd = res.odd;
        if (k > start) move_far(k - start);
        if (net.trace_burst)
            for EACH(i, net.n)
                if (res.row[i] == FAR) trace_silence(net, res.shown, i, start, k);
        for EACH(i, net.n)
            if (res.row[i] == FAR) close_silent(net, i, start, k, odd, res.shown.hold_start + k - 1);
        sync();
        if (odd && k > start) {  // the gates of step k − 1 are open
            refresh_all(net, res.shared);
            int active = list_active(net, res.shared);
            update(net, res.shared, res.shown.x, res.shared.pixels, active, res.shown.hold_start + k - 1);
        }
        forget_columns(net);  // their place was needed
        if (THREAD == 0) res.shown.again = !odd && k - start >= WORTHWHILE;
        SPENT(ON_CLOSING)
    } else if (THREAD == 0)
        res.shown.again = false;
    if (THREAD == 0)
        res.shown.spell = k > start ? SHORTEST : res.shown.spell < WORTHWHILE ? 2 * res.shown.spell : WORTHWHILE;
    sync();
    return k;
}
