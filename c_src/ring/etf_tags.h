/* etf_tags.h - the external term format's tags, by the names of its manual (without _EXT). */
#ifndef TAME_RING_ETF_TAGS_H
#define TAME_RING_ETF_TAGS_H

#define ETF_VERSION 131

enum etf_tag {
    ETF_NEW_FLOAT = 70,
    ETF_BIT_BINARY = 77,
    ETF_COMPRESSED = 80,
    ETF_NEW_PID = 88,
    ETF_NEW_PORT = 89,
    ETF_NEWER_REFERENCE = 90,
    ETF_SMALL_INTEGER = 97,
    ETF_INTEGER = 98,
    ETF_FLOAT = 99,
    ETF_ATOM = 100,
    ETF_REFERENCE = 101,
    ETF_PORT = 102,
    ETF_PID = 103,
    ETF_SMALL_TUPLE = 104,
    ETF_LARGE_TUPLE = 105,
    ETF_NIL = 106,
    ETF_STRING = 107,
    ETF_LIST = 108,
    ETF_BINARY = 109,
    ETF_SMALL_BIG = 110,
    ETF_LARGE_BIG = 111,
    ETF_NEW_FUN = 112,
    ETF_EXPORT = 113,
    ETF_NEW_REFERENCE = 114,
    ETF_SMALL_ATOM = 115,
    ETF_MAP = 116,
    ETF_FUN = 117,
    ETF_ATOM_UTF8 = 118,
    ETF_SMALL_ATOM_UTF8 = 119,
    ETF_V4_PORT = 120
};

#endif
