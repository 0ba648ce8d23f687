/*
 * tpcb: processes that meet at the locks of one database, each with a connection of its own.
 *
 * No connection is open while they are forked: the locks of POSIX are a process's, and a library that was copied with open
 * files believes that it has its parent's.
 */
#define _GNU_SOURCE
#include "bench.h"

#include "clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DELTA_MOST = 5000, LOOK_NS = 1000 * 1000, DEFAULT_S = 10 };

struct client {
    struct counter *counter;
    struct side side;
    uint64_t begun_ns, ended_ns, minor_faults, major_faults;
};

/* In memory that all processes share. */
struct together {
    struct failure_note note;
    uint64_t ready; /* processes that wait for the begin */
    bool begin, stop;
};

static bool transfer_once(struct session *session, const struct transfer *transfer)
{
    if (!is_null(session))
        return engine_transfer(session, transfer);
    __asm__ volatile("" : : "r"(transfer) : "memory");
    return true;
}

static void wait_a_moment(void) { nanosleep(&(struct timespec){0, LOOK_NS}, NULL); }

static void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail(errno, "memory for the processes");
    return memory;
}

static struct transfer drawn(struct random *random, uint64_t accounts)
{
    uint64_t branches = branches_of(accounts);
    return (struct transfer){
        .delta = (int64_t)random_below(random, 2 * DELTA_MOST + 1) - DELTA_MOST,
        .account = 1 + (int64_t)random_below(random, accounts),
        .teller = 1 + (int64_t)random_below(random, branches * TELLERS_OF_BRANCH),
        .branch = 1 + (int64_t)random_below(random, branches),
    };
}

/* A transaction that is under way when the time is over is brought to its end. */
static void transfer_on(struct client *client, struct session *session, struct random *random, const bool *stop)
{
    struct side *side = &client->side;
    uint64_t duration_s = session->database->options->duration_s;
    uint64_t done = 0, begun = clock_ns(), deadline = begun + (duration_s != 0 ? duration_s : DEFAULT_S) * SECOND_NS;
    side->latency_of = "transaction";
    side->latency_every = 1;
    client->begun_ns = begun;
    while (begun < deadline && !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
        struct transfer transfer = drawn(random, session->database->keys);
        bool is_done;
        for (; !(is_done = transfer_once(session, &transfer)); side->busy++)
            if (__atomic_load_n(stop, __ATOMIC_RELAXED))
                break;
        if (!is_done)
            break;
        uint64_t now = clock_ns();
        histogram_add(&side->latency, now - begun);
        begun = now;
        count_to(client->counter, ++done);
    }
    client->ended_ns = clock_ns();
    side->operations = done;
    side->elapsed_ns = client->ended_ns - client->begun_ns;
}

static void __attribute__((noreturn)) be_client(struct database *database, const struct test *test, struct random random,
                                                struct client *client, struct together *together)
{
    struct rusage before, after;
    failure_into(&together->note);
    struct session session = session_open(database, test);
    __atomic_add_fetch(&together->ready, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&together->begin, __ATOMIC_SEQ_CST) && !__atomic_load_n(&together->stop, __ATOMIC_SEQ_CST))
        wait_a_moment();
    getrusage(RUSAGE_SELF, &before);
    transfer_on(client, &session, &random, &together->stop);
    getrusage(RUSAGE_SELF, &after);
    cpu_between(&client->side, &before, &after);
    client->minor_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
    client->major_faults = (uint64_t)(after.ru_majflt - before.ru_majflt);
    session_close(&session);
    _exit(0);
}

/* Until all have ended; the status of one that failed, or 0. A signal, or a failure, stops the others. */
static int wait_for_all(struct together *together, uint64_t count)
{
    int failed = 0;
    for (uint64_t left = count; left > 0;) {
        int status;
        if (__atomic_load_n(&together->ready, __ATOMIC_SEQ_CST) == count)
            __atomic_store_n(&together->begin, true, __ATOMIC_SEQ_CST);
        if (stop_signal != 0 || failed != 0)
            __atomic_store_n(&together->stop, true, __ATOMIC_SEQ_CST);
        if (waitpid(-1, &status, WNOHANG) <= 0) {
            wait_a_moment();
            continue;
        }
        left--;
        if (status != 0)
            failed = status;
    }
    return failed;
}

static void take_over(const struct client *clients, uint64_t count, struct outcome *outcome)
{
    uint64_t begun = UINT64_MAX, ended = 0;
    outcome->reader_count = count;
    outcome->readers = calloc(count, sizeof *outcome->readers);
    if (outcome->readers == NULL)
        fail(ENOMEM, "memory for the processes");
    for (uint64_t at = 0; at < count; at++) {
        const struct client *client = &clients[at];
        outcome->readers[at] = client->side;
        outcome->minor_faults += client->minor_faults;
        outcome->major_faults += client->major_faults;
        outcome->total.cpu_user_us += client->side.cpu_user_us;
        outcome->total.cpu_system_us += client->side.cpu_system_us;
        begun = client->begun_ns < begun ? client->begun_ns : begun;
        ended = client->ended_ns > ended ? client->ended_ns : ended;
    }
    add_up(outcome);
    outcome->total.elapsed_ns = ended - begun;
}

void transfers_run(struct database *database, const struct test *test, struct random random, struct outcome *outcome)
{
    uint64_t count = database->options->threads;
    struct together *together = shared_memory(sizeof *together);
    struct client *clients = shared_memory(count * sizeof *clients);
    struct counter *counters = shared_memory(count * sizeof *counters);
    pid_t parent = getpid();
    for (uint64_t at = 0; at < count; at++) {
        clients[at].counter = &counters[at];
        pid_t child = fork();
        if (child < 0) {
            __atomic_store_n(&together->stop, true, __ATOMIC_SEQ_CST);
            fail(errno, "start a process");
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            random.state += (at + 1) * 0xD1B54A32D192ED03u;
            be_client(database, test, random, &clients[at], together);
        }
    }
    struct progress progress;
    progress_start(&progress, database->options->progress_fd, test->name, counters, count);
    int failed = wait_for_all(together, count);
    progress_end(&progress);
    if (failed != 0 && together->note.claimed)
        fail_with(together->note.error, together->note.code, together->note.step);
    if (failed != 0)
        fail_with("a process of the test was ended by a signal", WIFSIGNALED(failed) ? -WTERMSIG(failed) : failed, "transfer");
    take_over(clients, count, outcome);
    outcome->complete = stop_signal == 0;
    munmap(counters, count * sizeof *counters);
    munmap(clients, count * sizeof *clients);
    munmap(together, sizeof *together);
}
