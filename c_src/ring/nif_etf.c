/* nif_etf.c - external format that comes another way than by a ring: the control port, tests. */
#include "etf_scan.h"
#include "etf_write.h"
#include "nif_functions.h"
#include "nif_reading.h"
#include "nif_reply.h"
#include "nif_ring.h"

ERL_NIF_TERM nif_encode(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> binary() | encode; for tests: what call/3 writes into a slot of 64 KiB */
    ErlNifBinary binary;
    size_t size;

    (void)argc;
    if (!enif_alloc_binary(65536, &binary))
        return raise_enomem(env);
    size = etf_write(env, argv[0], binary.data, binary.size);
    if (size == 0 || size > binary.size || !enif_realloc_binary(&binary, size)) {
        enif_release_binary(&binary);
        return library_of(env)->am_encode;
    }
    return enif_make_binary(env, &binary);
}

ERL_NIF_TERM nif_scan(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Bytes) -> {Memory, Pairs, KeyBytes, Names} | What: what the scan of a reply finds; Names are
     * hashes of the names of nodes */
    struct etf_names *names = NULL; /* ours, where there may be any */
    struct etf_scan scan;
    ErlNifBinary bytes;
    ERL_NIF_TERM result;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &bytes) || bytes.size < 2)
        return enif_make_badarg(env);
    if (bytes.size > INLINE_REPLY_BYTES && enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER)
        return enif_schedule_nif(env, "scan", ERL_NIF_DIRTY_JOB_CPU_BOUND, nif_scan, 1, argv);
    etf_scan_open(&scan);
    scan.counts_few = 1;
    scan.names_seed = library_of(env)->names_seed;
    while (etf_scan_some(&scan, bytes.data, bytes.size, SCAN_STEP) == ETF_SCAN_MORE) {
    }
    if (scan.wrong != NULL && strcmp(scan.wrong, "few") == 0) {
        etf_scan_close(&scan);
        etf_scan_open(&scan);
        names = calloc(1, sizeof *names);
        if (names == NULL)
            scan.wrong = "enomem";
        scan.names = names;
        scan.names_seed = library_of(env)->names_seed;
    }
    while (etf_scan_some(&scan, bytes.data, bytes.size, SCAN_STEP) == ETF_SCAN_MORE) {
    }
    if (scan.wrong != NULL) {
        result = enif_make_atom(env, scan.wrong);
    } else {
        ERL_NIF_TERM list = enif_make_list(env, 0);

        for (int i = 0; i < scan.few_len; i++)
            list = enif_make_list_cell(env, enif_make_uint64(env, scan.few[i]), list);
        for (uint32_t i = 0; names != NULL && names->len > 0 && i < ETF_NAMES_PLACES; i++)
            if (names->hashes[i] != 0)
                list = enif_make_list_cell(env, enif_make_uint64(env, names->hashes[i]), list);
        result = enif_make_tuple4(env, enif_make_uint64(env, scan.heap),
                                  enif_make_uint64(env, scan.pairs),
                                  enif_make_uint64(env, scan.key_bytes), list);
    }
    etf_scan_close(&scan);
    free(names);
    return result;
}

ERL_NIF_TERM nif_read(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Bytes) -> {ok, Term} | wrong; on a dirty CPU scheduler: a term that was scanned, and whose
     * maps would hold another scheduler for too long. It makes no atom. */
    ErlNifBinary bytes;
    ERL_NIF_TERM term;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &bytes))
        return enif_make_badarg(env);
    if (enif_binary_to_term(env, bytes.data, bytes.size, &term, ERL_NIF_BIN2TERM_SAFE) !=
        bytes.size)
        return enif_make_atom(env, "wrong");
    return enif_make_tuple2(env, library_of(env)->am_ok, term);
}

ERL_NIF_TERM nif_flat_size(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> Words | none; on a dirty CPU scheduler */
    (void)argc;
#if ERL_NIF_MAJOR_VERSION > 2 || ERL_NIF_MINOR_VERSION >= 18
    return enif_make_uint64(env, enif_term_size(argv[0]));
#else
    (void)argv;
    return library_of(env)->am_none;
#endif
}
