# The echo programs of the latency lab, each an OS process of its own: tame_echo (port,
# sockets), tame_c_node and, where a JDK and Jinterface are, tame_echo_node.jar.

PROGRAMS := $(HERE)programs/

TARGETS += $(OUT)/tame_echo

$(OUT)/tame_echo: $(addprefix $(PROGRAMS),echo.c frame.h stream.h watch.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -pthread -o $@ $<

# What runs a peer.
TARGETS += $(OUT)/tame_warden

# With what the runtime knows of the operating system.
OS := $(TAME)/c_src/os/

$(OUT)/tame_warden: $(PROGRAMS)warden.c $(wildcard $(OS)*.c $(OS)*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -I$(OS) -o $@ $(filter %.c,$^)

# The load lab's generator.
LOAD := $(addprefix $(PROGRAMS)load/,answer.h plan.h connection.h)
TARGETS += $(OUT)/tame_load

$(OUT)/tame_load: $(PROGRAMS)load/load.c $(LOAD) $(PROGRAMS)watch.h
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -pthread -o $@ $<

TESTS += $(TEST_BUILD)/answer_test

$(TEST_BUILD)/answer_test: $(TAME)/test/c/answer_test.c $(TAME)/test/c/check.h $(LOAD)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SANITIZE) -I$(PROGRAMS)load -o $@ $<

# _REENTRANT gives each thread its own erl_errno. libei.a is found by its full name, so that
# libei_st.a or a shared libei is never taken in its place.
ifneq ($(wildcard $(EI_LIB)/libei.a),)
TARGETS += $(OUT)/tame_c_node
endif

$(OUT)/tame_c_node: $(addprefix $(PROGRAMS),c_node.c line.h watch.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -pthread -D_REENTRANT -isystem $(EI_INCLUDE) -o $@ $< $(EI_LIB)/libei.a

# 8 is what OtpErlang.jar is compiled for, and a JDK may have dropped it; 11 is the oldest that
# all JDKs in use know.
JAVA_SOURCES := $(HERE)../java/src/tame/EchoNode.java
JAR ?= $(patsubst %javac,%jar,$(JAVAC))

ifneq ($(and $(JAVAC),$(JINTERFACE_JAR)),)
TARGETS += $(OUT)/tame_echo_node.jar
endif

$(OUT)/tame_echo_node.jar: $(JAVA_SOURCES)
	$(Q)mkdir -p $(@D) $(BUILD)/java
	$(Q)$(JAVAC) --release 11 -Xlint:all -Werror -cp $(JINTERFACE_JAR) -d $(BUILD)/java $^
	$(Q)$(JAR) --create --file $@ -C $(BUILD)/java .

TESTS += $(TEST_BUILD)/frame_test

$(TEST_BUILD)/frame_test: $(TAME)/test/c/frame_test.c $(TAME)/test/c/check.h \
                          $(addprefix $(PROGRAMS),frame.h stream.h line.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) $(SANITIZE) -I$(PROGRAMS) -pthread -o $@ $<
