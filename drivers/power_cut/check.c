/* Walks everything that is there and holds it against itself. */
#define _GNU_SOURCE
#include "check.h"

#include "failure.h"
#include "schema.h"
#include "store.h"

#include <inttypes.h>

enum { KEY_BYTES_MAX = 64, COMPLAINTS_MAX = 8, COMPLAINT_BYTES = 200 };

struct client {
    bool seen;
    uint64_t last, entries;
};

static struct {
    const struct options *options;
    struct client clients[CLIENTS_MAX];
    struct account *expected; /* from the entries */
    uint64_t entries, accounts, balances_wrong, values_wrong, order_wrong, counts_wrong, transaction;
    struct pages pages;
    char complaints[COMPLAINTS_MAX][COMPLAINT_BYTES]; /* the engine's own */
    size_t complaint_count;
    char before[KEY_BYTES_MAX];
    size_t before_size; /* 0: no key was met in this walk */
} found;

static void say_found(const char *error, int code, const char *step)
{
    printf("{\"library\": \"%s\", \"transaction\": %" PRIu64 ", \"entries\": %" PRIu64 ", \"accounts\": %" PRIu64, store_version(),
           found.transaction, found.entries, found.accounts);
    const char *before = "";
    fputs(", \"clients\": [", stdout);
    for (uint32_t number = 0; number < CLIENTS_MAX; number++) {
        const struct client *client = &found.clients[number];
        if (!client->seen)
            continue;
        printf("%s{\"client\": %" PRIu32 ", \"last\": %" PRIu64 ", \"entries\": %" PRIu64 ", \"gaps\": %" PRIu64 "}",
               before, number, client->last, client->entries, client->last - client->entries);
        before = ", ";
    }
    printf("], \"balances_wrong\": %" PRIu64 ", \"values_wrong\": %" PRIu64 ", \"order_wrong\": %" PRIu64,
           found.balances_wrong, found.values_wrong, found.order_wrong);
    const struct pages *pages = &found.pages;
    printf(", \"counts_wrong\": %" PRIu64, found.counts_wrong);
    printf(", \"pages\": {\"branch\": %" PRIu64 ", \"leaf\": %" PRIu64 ", \"overflow\": %" PRIu64 ", \"free\": %" PRIu64
           ", \"last\": %" PRIu64 "}, \"pages_unaccounted\": %" PRIu64 ", \"complaints\": [",
           pages->branch, pages->leaf, pages->overflow, pages->free, pages->last, pages->unaccounted);
    for (size_t at = 0; at < found.complaint_count; at++) {
        fputs(at == 0 ? "" : ", ", stdout);
        print_text(found.complaints[at]);
    }
    putchar(']');
    print_failure(error, code, step);
}

void (*say)(const char *error, int code, const char *step) = say_found;

static void complain(const char *text)
{
    if (found.complaint_count < COMPLAINTS_MAX)
        snprintf(found.complaints[found.complaint_count++], COMPLAINT_BYTES, "%s", text);
}

static bool is_behind(const struct bytes *key)
{
    size_t least = key->size < found.before_size ? key->size : found.before_size;
    int order = memcmp(key->data, found.before, least);
    return order > 0 || (order == 0 && key->size > found.before_size);
}

static void look_at_order(const struct bytes *key)
{
    found.order_wrong += found.before_size > 0 && !is_behind(key);
    found.before_size = key->size < KEY_BYTES_MAX ? key->size : KEY_BYTES_MAX;
    memcpy(found.before, key->data, found.before_size);
}

static void take_entry(const struct bytes *key, const struct bytes *value)
{
    struct entry_key ours;
    struct entry entry;
    look_at_order(key);
    found.entries++;
    if (key->size != sizeof ours || value->size != found.options->value_bytes) {
        found.values_wrong++;
        return;
    }
    memcpy(&ours, key->data, sizeof ours);
    memcpy(&entry, value->data, sizeof entry);
    uint32_t number = be32toh(ours.client);
    uint64_t sequence = be64toh(ours.sequence);
    if (number >= CLIENTS_MAX || sequence == 0 ||
        !is_padded(value->data, sizeof entry, value->size, pad_of(&ours, sizeof ours))) {
        found.values_wrong++;
        return;
    }
    struct client *client = &found.clients[number];
    client->seen = true;
    client->entries++;
    if (sequence > client->last)
        client->last = sequence;
    for (int at = 0; at < CHANGES; at++) {
        if (entry.account[at] >= ACCOUNTS_MAX) {
            found.values_wrong++;
            return;
        }
        found.expected[entry.account[at]].balance += entry.change[at];
        found.expected[entry.account[at]].changes++;
    }
}

static void take_account(const struct bytes *key, const struct bytes *value)
{
    uint32_t ours;
    struct account account;
    look_at_order(key);
    if (key->size != sizeof ours || value->size != found.options->value_bytes) {
        found.accounts++;
        found.values_wrong++;
        return;
    }
    memcpy(&ours, key->data, sizeof ours);
    memcpy(&account, value->data, sizeof account);
    uint32_t number = be32toh(ours);
    /* They were made without a gap, so the walk meets them as it counts. */
    if (number != found.accounts || number >= ACCOUNTS_MAX ||
        !is_padded(value->data, sizeof account, value->size, pad_of(&ours, sizeof ours)))
        found.values_wrong++;
    else if (memcmp(&account, &found.expected[number], sizeof account) != 0)
        found.balances_wrong++;
    found.accounts++;
}

int check_store(const struct options *options)
{
    found.options = options;
    found.expected = calloc(ACCOUNTS_MAX, sizeof *found.expected);
    demand_system(found.expected == NULL ? ENOMEM : 0, "find memory for the accounts");
    store_open(options);
    found.transaction = store_transaction();
    found.counts_wrong += store_walk(ENTRIES, take_entry);
    found.before_size = 0;
    found.counts_wrong += store_walk(ACCOUNTS, take_account);
    for (uint64_t number = found.accounts; number < ACCOUNTS_MAX; number++)
        found.balances_wrong += found.expected[number].changes != 0;
    store_verify(&found.pages, complain);
    say(NULL, 0, NULL);
    return 0;
}
