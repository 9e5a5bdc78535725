/* A port driver that computes CRC-64. Small work is done at once, on the scheduler of who asks; large
 * work is done outside, by the same functions: each schedules itself when it is called with much. */
#include <tame/driver.h>

enum { SD_CRC64 = 1 };

/* From here on the work is worth the way to another thread and back, some tens of us. */
#define SD_LARGE 8192
#define SD_REPLY_BYTES 8

struct sd {
    ErlDrvPort port;
};

/* ---- the work: plain C ---- */

#define POLYNOMIAL UINT64_C(0xC96C5795D7870F42)

static uint64_t table[256];

static void table_init(void)
{
    for (int i = 0; i < 256; i++) {
        uint64_t crc = (uint64_t)i;

        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        table[i] = crc;
    }
}

static uint64_t crc64(uint64_t crc, const char *bytes, size_t len)
{
    crc = ~crc;
    for (size_t i = 0; i < len; i++)
        crc = table[(crc ^ (unsigned char)bytes[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

static void write64(char *to, uint64_t value)
{
    for (int i = SD_REPLY_BYTES; i-- > 0; value >>= 8)
        to[i] = (char)(value & 0xff);
}

/* ---- the driver ---- */

static ErlDrvSSizeT sd_ctrl(ErlDrvData handle, unsigned int command, char *buf, ErlDrvSizeT len,
                            char **res, ErlDrvSizeT rlen)
{
    struct sd *sd = (struct sd *)handle;

    if (command != SD_CRC64 || rlen < SD_REPLY_BYTES)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
    if (len > SD_LARGE && !tame_drv_is_dirty(sd->port))
        return tame_drv_control(sd->port, TAME_DRV_CPU, command, buf, len, res);
    write64(*res, crc64(0, buf, len));
    return SD_REPLY_BYTES;
}

/* Small work goes outside too while the port has work there: replies come in the order of the
 * commands. */
static void sd_outputv(ErlDrvData handle, ErlIOVec *ev)
{
    struct sd *sd = (struct sd *)handle;
    char reply[SD_REPLY_BYTES];
    uint64_t crc = 0;

    if (!tame_drv_is_dirty(sd->port) && (ev->size > SD_LARGE || tame_drv_waiting(sd->port) > 0)) {
        if (!tame_drv_outputv(sd->port, TAME_DRV_CPU, ev))
            tame_drv_fail(sd->port, "enomem");
        return;
    }
    for (int i = 0; i < ev->vsize; i++)
        crc = crc64(crc, ev->iov[i].iov_base, ev->iov[i].iov_len);
    write64(reply, crc);
    tame_drv_output(sd->port, reply, sizeof reply);
}

static int sd_init(void)
{
    table_init();
    return 0;
}

static ErlDrvData sd_start(ErlDrvPort port, char *command)
{
    struct sd *sd = driver_alloc(sizeof *sd); /* the port's until stop */

    (void)command;
    if (sd == NULL)
        return ERL_DRV_ERROR_GENERAL;
    sd->port = port;
    return (ErlDrvData)sd;
}

/* Nothing is outside any more. */
static void sd_stop(ErlDrvData handle)
{
    driver_free(handle);
}

static ErlDrvEntry sd_entry = {
    .init = sd_init,
    .start = sd_start,
    .stop = sd_stop,
    .control = sd_ctrl,
    .outputv = sd_outputv,
    .driver_name = "sd_drv",
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING,
};

TAME_DRIVER_INIT(sd_drv, sd_entry, NULL)
