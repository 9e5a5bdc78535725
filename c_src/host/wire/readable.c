/* Before a frame is written, see readable.h. */
#include "port/frame_bounds.h"
#include "ring/etf_scan.h"
#include "wire/readable.h"

/* What stands around a question, or a message without its leases, at most: in bytes, and in memory. */
#define AROUND_BYTES 2048

/* Items between two looks at what was found. */
#define SCAN_STEP 4096

int readable_size(size_t size)
{
    return size <= FRAME_BYTES_MAX - AROUND_BYTES;
}

int readable(const unsigned char *bytes, size_t size)
{
    enum etf_scan_end end = ETF_SCAN_MORE;
    struct etf_scan scan;

    if (!readable_size(size))
        return 0;
    etf_scan_open(&scan);
    while (end == ETF_SCAN_MORE && scan.heap <= FRAME_MEMORY_MAX - AROUND_BYTES)
        end = etf_scan_some(&scan, bytes, size + 1, SCAN_STEP);
    const int ok = end == ETF_SCAN_DONE && scan.heap <= FRAME_MEMORY_MAX - AROUND_BYTES;
    etf_scan_close(&scan);
    return ok;
}
