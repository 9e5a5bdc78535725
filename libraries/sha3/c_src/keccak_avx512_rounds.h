/* Four rounds as assembly, for the 25 lanes in registers 0 to 24 of one width. A compiler that is
 * given intrinsics keeps some lanes in memory; here none goes there.
 *
 * A lane stays in its column's registers: x, x + 5, ... x + 20. Each round puts lane (x, y) where
 * lane (x, x + 2y) was, so after four rounds all are back. Registers 25 to 31 are the round's own.
 *
 * Macros take a register's number as text; R is the kind of register, "xmm", "ymm" or "zmm". */
#ifndef SHA3_KECCAK_AVX512_ROUNDS_H
#define SHA3_KECCAK_AVX512_ROUNDS_H

#define REG(R, n) "%%" R #n

#define MOVE(R, to, from) "vmovdqa64 " REG(R, from) ", " REG(R, to) "\n\t"
#define TURN(R, to, from, by) "vprolq $" #by ", " REG(R, from) ", " REG(R, to) "\n\t"

/* `to` becomes a function of itself, a and b: bit 4to + 2a + b of the table. */
#define LOGIC(R, table, to, a, b) \
    "vpternlogq $" #table ", " REG(R, b) ", " REG(R, a) ", " REG(R, to) "\n\t"

#define XOR3(R, to, a, b) LOGIC(R, 0x96, to, a, b)

/* to ^ (~a & b) */
#define CHI_LANE(R, to, a, b) LOGIC(R, 0xd2, to, a, b)

/* ---- theta ---- */

#define PARITY(R, to, l0, l1, l2, l3, l4) MOVE(R, to, l0) XOR3(R, to, l1, l2) XOR3(R, to, l3, l4)

/* A line of a macro is a step. */
/* clang-format off */

/* The parity of the column before, and that of the column after, turned. */
#define COLUMN(R, before, after, turned, l0, l1, l2, l3, l4) \
    TURN(R, turned, after, 1)                                \
    XOR3(R, l0, before, turned)                              \
    XOR3(R, l1, before, turned)                              \
    XOR3(R, l2, before, turned)                              \
    XOR3(R, l3, before, turned)                              \
    XOR3(R, l4, before, turned)

#define THETA(R)                            \
    PARITY(R, 25, 0, 5, 10, 15, 20)         \
    PARITY(R, 26, 1, 6, 11, 16, 21)         \
    PARITY(R, 27, 2, 7, 12, 17, 22)         \
    PARITY(R, 28, 3, 8, 13, 18, 23)         \
    PARITY(R, 29, 4, 9, 14, 19, 24)         \
    COLUMN(R, 29, 26, 30, 0, 5, 10, 15, 20) \
    COLUMN(R, 25, 27, 31, 1, 6, 11, 16, 21) \
    COLUMN(R, 26, 28, 30, 2, 7, 12, 17, 22) \
    COLUMN(R, 27, 29, 31, 3, 8, 13, 18, 23) \
    COLUMN(R, 28, 25, 30, 4, 9, 14, 19, 24)

/* ---- rho, pi and chi: the five rows of the result, each with the registers its lanes come from.
 * Turns bring each lane of the row to the register it stays in, round a ring whose first lane waits
 * outside, in t0. ---- */

/* The five lanes of a row, turned; t0 is a copy of the first, t1 becomes one of the second. */
#define CHI(R, b0, b1, b2, b3, b4, t0, t1) \
    MOVE(R, t1, b1)                        \
    CHI_LANE(R, b0, b1, b2)                \
    CHI_LANE(R, b1, b2, b3)                \
    CHI_LANE(R, b2, b3, b4)                \
    CHI_LANE(R, b3, b4, t0)                \
    CHI_LANE(R, b4, t0, t1)

#define ROW_0(R, b0, b1, b2, b3, b4) \
    TURN(R, b1, b1, 44)              \
    TURN(R, b2, b2, 43)              \
    TURN(R, b3, b3, 21)              \
    TURN(R, b4, b4, 14)              \
    MOVE(R, 25, b0)                  \
    CHI(R, b0, b1, b2, b3, b4, 25, 26)

#define ROW_1(R, b0, b1, b2, b3, b4) \
    TURN(R, 27, b0, 28)              \
    TURN(R, b0, b3, 45)              \
    TURN(R, b3, b1, 20)              \
    TURN(R, b1, b4, 61)              \
    TURN(R, b4, b2, 3)               \
    MOVE(R, b2, 27)                  \
    CHI(R, b2, b3, b4, b0, b1, 27, 28)

#define ROW_2(R, b0, b1, b2, b3, b4) \
    TURN(R, 29, b0, 1)               \
    TURN(R, b0, b1, 6)               \
    TURN(R, b1, b2, 25)              \
    TURN(R, b2, b3, 8)               \
    TURN(R, b3, b4, 18)              \
    MOVE(R, b4, 29)                  \
    CHI(R, b4, b0, b1, b2, b3, 29, 30)

#define ROW_3(R, b0, b1, b2, b3, b4) \
    TURN(R, 25, b0, 27)              \
    TURN(R, b0, b4, 56)              \
    TURN(R, b4, b3, 15)              \
    TURN(R, b3, b2, 10)              \
    TURN(R, b2, b1, 36)              \
    MOVE(R, b1, 25)                  \
    CHI(R, b1, b2, b3, b4, b0, 25, 26)

#define ROW_4(R, b0, b1, b2, b3, b4) \
    TURN(R, 27, b0, 62)              \
    TURN(R, b0, b2, 39)              \
    TURN(R, b2, b4, 2)               \
    TURN(R, b4, b1, 55)              \
    TURN(R, b1, b3, 41)              \
    MOVE(R, b3, 27)                  \
    CHI(R, b3, b4, b0, b1, b2, 27, 28)

/* The constant of round n of the four; ALL repeats it in all of a register's words. */
#define IOTA(R, ALL, n) "vpxorq 8*" #n "(%[constant])" ALL ", " REG(R, 0) ", " REG(R, 0) "\n\t"

#define FOUR_ROUNDS(R, ALL)      \
    THETA(R)                     \
    ROW_0(R, 0, 6, 12, 18, 24)   \
    IOTA(R, ALL, 0)              \
    ROW_1(R, 3, 9, 10, 16, 22)   \
    ROW_2(R, 1, 7, 13, 19, 20)   \
    ROW_3(R, 4, 5, 11, 17, 23)   \
    ROW_4(R, 2, 8, 14, 15, 21)   \
    THETA(R)                     \
    ROW_0(R, 0, 16, 7, 23, 14)   \
    IOTA(R, ALL, 1)              \
    ROW_1(R, 18, 9, 20, 11, 2)   \
    ROW_2(R, 6, 22, 13, 4, 15)   \
    ROW_3(R, 24, 10, 1, 17, 8)   \
    ROW_4(R, 12, 3, 19, 5, 21)   \
    THETA(R)                     \
    ROW_0(R, 0, 11, 22, 8, 19)   \
    IOTA(R, ALL, 2)              \
    ROW_1(R, 23, 9, 15, 1, 12)   \
    ROW_2(R, 16, 2, 13, 24, 5)   \
    ROW_3(R, 14, 20, 6, 17, 3)   \
    ROW_4(R, 7, 18, 4, 10, 21)   \
    THETA(R)                     \
    ROW_0(R, 0, 1, 2, 3, 4)      \
    IOTA(R, ALL, 3)              \
    ROW_1(R, 8, 9, 5, 6, 7)      \
    ROW_2(R, 11, 12, 13, 14, 10) \
    ROW_3(R, 19, 15, 16, 17, 18) \
    ROW_4(R, 22, 23, 24, 20, 21)

/* ---- all lanes, which take SIZE bytes each in memory: DO(n, R, SIZE, ALL) ---- */

#define EACH_LANE(DO, ...)                                                                         \
    DO(0, __VA_ARGS__)                                                                             \
    DO(1, __VA_ARGS__) DO(2, __VA_ARGS__) DO(3, __VA_ARGS__) DO(4, __VA_ARGS__) DO(5, __VA_ARGS__) \
        DO(6, __VA_ARGS__) DO(7, __VA_ARGS__) DO(8, __VA_ARGS__) DO(9, __VA_ARGS__)                \
            DO(10, __VA_ARGS__) DO(11, __VA_ARGS__) DO(12, __VA_ARGS__) DO(13, __VA_ARGS__)        \
                DO(14, __VA_ARGS__) DO(15, __VA_ARGS__) DO(16, __VA_ARGS__) DO(17, __VA_ARGS__)    \
                    DO(18, __VA_ARGS__) DO(19, __VA_ARGS__) DO(20, __VA_ARGS__)                    \
                        DO(21, __VA_ARGS__) DO(22, __VA_ARGS__) DO(23, __VA_ARGS__)                \
                            DO(24, __VA_ARGS__)

#define LOAD_ONE(n, R, SIZE, ALL) "vmovq " #SIZE "*" #n "(%[lanes]), " REG(R, n) "\n\t"
#define STORE_ONE(n, R, SIZE, ALL) "vmovq " REG(R, n) ", " #SIZE "*" #n "(%[lanes])\n\t"
#define LOAD_MANY(n, R, SIZE, ALL) "vmovdqu64 " #SIZE "*" #n "(%[lanes]), " REG(R, n) "\n\t"
#define STORE_MANY(n, R, SIZE, ALL) "vmovdqu64 " REG(R, n) ", " #SIZE "*" #n "(%[lanes])\n\t"

/* Goes to label 2 after the block's last lane. Of one state a broadcast reads the lane, and no byte
 * beyond it. */
#define XOR_LANE(n, R, SIZE, ALL) \
    "cmp $8*" #n ", %[rate]\n\t"  \
    "jbe 2f\n\t"                  \
    "vpxorq " #SIZE "*" #n "(%[from])" ALL ", " REG(R, n) ", " REG(R, n) "\n\t"

/* clang-format on */

#define VECTOR_REGISTERS                                                                          \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",      \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", \
        "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", \
        "xmm31"

#endif
