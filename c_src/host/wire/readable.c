/* Before a frame is written, see readable.h. */
#include "ring/etf_scan.h"
#include "wire/readable.h"

/* Items between two looks at what was found. */
#define SCAN_STEP 4096

int readable(const unsigned char *bytes, size_t size)
{
    enum etf_scan_end end = ETF_SCAN_MORE;
    struct etf_scan scan;

    if (size > READABLE_BYTES)
        return 0;
    etf_scan_open(&scan);
    while (end == ETF_SCAN_MORE && scan.heap <= FRAME_MEMORY_MAX - AROUND_BYTES)
        end = etf_scan_some(&scan, bytes, size + 1, SCAN_STEP);
    const int ok = end == ETF_SCAN_DONE && scan.heap <= FRAME_MEMORY_MAX - AROUND_BYTES;
    etf_scan_close(&scan);
    return ok;
}
