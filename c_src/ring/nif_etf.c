/* nif_etf.c - what the ring makes of external format, asked for by tests. */
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
    /* (Bytes) -> {Memory, Pairs, KeyBytes} | What: what the scan of a reply finds */
    struct etf_scan scan;
    ErlNifBinary bytes;
    ERL_NIF_TERM result;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &bytes) || bytes.size < 2)
        return enif_make_badarg(env);
    if (bytes.size > INLINE_REPLY_BYTES && enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER)
        return enif_schedule_nif(env, "scan", ERL_NIF_DIRTY_JOB_CPU_BOUND, nif_scan, 1, argv);
    etf_scan_open(&scan);
    while (etf_scan_some(&scan, bytes.data, bytes.size, SCAN_STEP) == ETF_SCAN_MORE) {
    }
    if (scan.wrong != NULL)
        result = enif_make_atom(env, scan.wrong);
    else
        result = enif_make_tuple3(env, enif_make_uint64(env, scan.heap),
                                  enif_make_uint64(env, scan.pairs),
                                  enif_make_uint64(env, scan.key_bytes));
    etf_scan_close(&scan);
    return result;
}
