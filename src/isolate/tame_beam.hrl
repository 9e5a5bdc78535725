%% Operands and instructions of a beam (tame_beam).

%% Operands: what the lowest three bits of their first byte say.
-define(U, 0).
-define(I, 1).
-define(A, 2).
-define(X, 3).
-define(Y, 4).
-define(F, 5).
-define(EXTENDED, 7).

-define(NIL, {?A, 0}).

%% Instructions that are looked for or written: their number in genop.tab.
-define(LABEL, 1).
-define(FUNC_INFO, 2).
-define(INT_CODE_END, 3).
-define(CALL_EXT, 7).
-define(CALL_EXT_LAST, 8).
-define(ALLOCATE, 12).
-define(TEST_HEAP, 16).
-define(DEALLOCATE, 18).
-define(RETURN, 19).
-define(IS_NE_EXACT, 44).
-define(MOVE, 64).
-define(PUT_LIST, 69).
-define(CALL_EXT_ONLY, 78).
-define(ON_LOAD, 149).
-define(GET_HD, 162).
-define(GET_TL, 163).
-define(NIF_START, 179).
