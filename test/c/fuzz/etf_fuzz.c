/* Fuzzes the reader of external terms, and everything that walks a term: what is read is copied,
 * compared, hashed, printed and written, and must come back the same. And the VM's look at a reply:
 * what its search leaves out, its scan finds nothing in. By clang's libFuzzer: make -C c_src fuzz. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ring/etf_search.h"
#include "life/host.h"
#include "term/copy.h"
#include "term/hash.h"
#include "term/order.h"
#include "wire/etf.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    host_init();
    return 0;
}

static void must(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}

static void scanned(const unsigned char *bytes, size_t size)
{
    struct etf_scan scan;

    if (size < 2)
        return;
    etf_scan_open(&scan);
    scan.counts_few = 1;
    while (etf_scan_some(&scan, bytes, size, 100) == ETF_SCAN_MORE) {
    }
    if (scan.wrong == NULL || strcmp(scan.wrong, "few") == 0 ||
        strcmp(scan.wrong, "references") == 0) {
        must(scan.few_len == 0 || etf_may_have(bytes, 0, size, size, 255), "names are found");
        must(scan.pairs == 0 || etf_may_have(bytes, 0, size, size, 0), "maps are found");
        must(!scan.has_tree || etf_may_be_wrong(bytes, size), "large maps are found");
    }
    etf_scan_close(&scan);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    ErlNifEnv env, other;
    term t, again;
    char text[64];

    scanned(bytes, size);
    env_init(&env, ENV_INDEPENDENT);
    env_init(&other, ENV_INDEPENDENT);
    size_t taken = etf_read(&env, bytes, size, 0, &t);
    if (taken > 0) {
        struct etf_out out;

        must(taken <= size, "no more is taken than there is");
        must(term_identical(t, term_copy(&other, t)), "a copy is identical");
        must(term_hash(t, 1) == term_hash(term_copy(&other, t), 1), "and has the same hash");
        enif_snprintf(text, sizeof text, "%T", t);
        etf_out_init(&out);
        etf_size(t, ETF_COMPARABLE, &out);
        unsigned char *written = malloc(out.size);
        must(etf_write(t, written) == written + out.size, "a term has the size that was counted");
        must(etf_read(&other, written, out.size, 0, &again) == out.size, "what we write we read");
        must(term_identical(t, again), "and it is the same");
        struct etf_cursor cursor = {written, written + out.size, 0};
        size_t skipped;
        must(etf_skip(&cursor, &skipped) != NULL && skipped == out.size, "it can be passed over");
        free(written);
        etf_out_free(&out);
    }
    env_destroy(&env);
    env_destroy(&other);
    return 0;
}
