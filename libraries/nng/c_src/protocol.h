/* protocol.h - nng's protocols by name: how each is opened, and in which directions it goes. */
#ifndef TAME_NNG_PROTOCOL_H
#define TAME_NNG_PROTOCOL_H

#include <nng/nng.h>
#include <nng/protocol/bus0/bus.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pair1/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/protocol/survey0/respond.h>
#include <nng/protocol/survey0/survey.h>
#include <string.h>

enum tn_trait {
    TN_RECEIVES = 1,
    TN_SENDS = 2,
    TN_REPLIES = 4, /* sends once for each message that it has received */
    TN_SURVEYS = 8, /* nng does not tell a waiter that the survey is over */
    TN_SUBSCRIBES = 16,
    TN_KEEPS = 32 /* nng may keep connections that have ended: leaving.h */
};

struct tn_protocol {
    const char *name;
    int (*open)(nng_socket *);
    int traits;
};

static const struct tn_protocol tn_protocols[] = {
    {"req0", nng_req0_open, TN_RECEIVES | TN_SENDS},
    {"rep0", nng_rep0_open, TN_RECEIVES | TN_SENDS | TN_REPLIES},
    {"pub0", nng_pub0_open, TN_SENDS},
    {"sub0", nng_sub0_open, TN_RECEIVES | TN_SUBSCRIBES},
    {"push0", nng_push0_open, TN_SENDS},
    {"pull0", nng_pull0_open, TN_RECEIVES},
    {"pair0", nng_pair0_open, TN_RECEIVES | TN_SENDS},
    {"pair1", nng_pair1_open, TN_RECEIVES | TN_SENDS},
    {"surveyor0", nng_surveyor0_open, TN_RECEIVES | TN_SENDS | TN_SURVEYS},
    {"respondent0", nng_respondent0_open, TN_RECEIVES | TN_SENDS | TN_REPLIES | TN_KEEPS},
    {"bus0", nng_bus0_open, TN_RECEIVES | TN_SENDS},
};

/* NULL when there is none of that name. */
static inline const struct tn_protocol *tn_protocol_find(const char *name)
{
    for (size_t i = 0; i < sizeof tn_protocols / sizeof tn_protocols[0]; i++)
        if (strcmp(tn_protocols[i].name, name) == 0)
            return &tn_protocols[i];
    return NULL;
}

#endif
