/* Counters, gauges and samplers: cells by labels, names taken twice, values after many threads. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tensorflow/c/eager/c_api_experimental.h>

#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/proto.h"

static void counters(void) {
    status = TF_NewStatus();
    TFE_MonitoringCounter0* plain = TFE_MonitoringNewCounter0("/test/counter0", status, "a counter");
    print_status("counter0", status);
    TFE_MonitoringCounterCell* cell = TFE_MonitoringGetCellCounter0(plain);
    printf("%lld", (long long)TFE_MonitoringCounterCellValue(cell));
    TFE_MonitoringCounterCellIncrementBy(cell, 3);
    TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringGetCellCounter0(plain), 4);
    printf(" %lld\n", (long long)TFE_MonitoringCounterCellValue(cell));
    printf("the same cell: %d\n", cell == TFE_MonitoringGetCellCounter0(plain));
    printf("a second one: %d", TFE_MonitoringNewCounter0("/test/counter0", fresh(status), "again") != NULL);
    print_status("", status);
    TFE_MonitoringCounter1* one = TFE_MonitoringNewCounter1("/test/counter1", fresh(status), "labelled", "label");
    print_status("counter1", status);
    TFE_MonitoringCounterCell *a = TFE_MonitoringGetCellCounter1(one, "a"), *b = TFE_MonitoringGetCellCounter1(one, "b");
    TFE_MonitoringCounterCellIncrementBy(a, 1);
    TFE_MonitoringCounterCellIncrementBy(b, 10);
    TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringGetCellCounter1(one, "a"), 1);
    printf("%lld %lld, different %d\n", (long long)TFE_MonitoringCounterCellValue(a),
           (long long)TFE_MonitoringCounterCellValue(b), a != b);
    TFE_MonitoringCounter2* two = TFE_MonitoringNewCounter2("/test/counter2", fresh(status), "two labels", "x", "y");
    print_status("counter2", status);
    TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringGetCellCounter2(two, "a", "b"), 5);
    printf("%lld %lld\n", (long long)TFE_MonitoringCounterCellValue(TFE_MonitoringGetCellCounter2(two, "a", "b")),
           (long long)TFE_MonitoringCounterCellValue(TFE_MonitoringGetCellCounter2(two, "b", "a")));
    TFE_MonitoringDeleteCounter0(plain);
    TFE_MonitoringDeleteCounter1(one);
    TFE_MonitoringDeleteCounter2(two);
    plain = TFE_MonitoringNewCounter0("/test/counter0", fresh(status), "anew");
    print_status("after the deletion", status);
    printf("%lld\n", (long long)TFE_MonitoringCounterCellValue(TFE_MonitoringGetCellCounter0(plain)));
    TFE_MonitoringDeleteCounter0(plain);
    TF_DeleteStatus(status);
}

static void int_gauges(void) {
    status = TF_NewStatus();
    TFE_MonitoringIntGauge0* plain = TFE_MonitoringNewIntGauge0("/test/int0", status, "a gauge");
    print_status("gauge0", status);
    TFE_MonitoringIntGaugeCell* cell = TFE_MonitoringGetCellIntGauge0(plain);
    printf("%lld", (long long)TFE_MonitoringIntGaugeCellValue(cell));
    TFE_MonitoringIntGaugeCellSet(cell, -5);
    TFE_MonitoringIntGaugeCellSet(cell, INT64_MAX);
    printf(" %lld\n", (long long)TFE_MonitoringIntGaugeCellValue(cell));
    TFE_MonitoringIntGauge1* one = TFE_MonitoringNewIntGauge1("/test/int1", fresh(status), "d", "x");
    TFE_MonitoringIntGauge2* two = TFE_MonitoringNewIntGauge2("/test/int2", fresh(status), "d", "x", "y");
    TFE_MonitoringIntGaugeCellSet(TFE_MonitoringGetCellIntGauge1(one, ""), 1);
    TFE_MonitoringIntGaugeCellSet(TFE_MonitoringGetCellIntGauge2(two, "a", "b"), 2);
    printf("%lld %lld\n", (long long)TFE_MonitoringIntGaugeCellValue(TFE_MonitoringGetCellIntGauge1(one, "")),
           (long long)TFE_MonitoringIntGaugeCellValue(TFE_MonitoringGetCellIntGauge2(two, "a", "b")));
    printf("of another kind: %d", TFE_MonitoringNewBoolGauge0("/test/int0", fresh(status), "d") != NULL);
    print_status("", status);
    TFE_MonitoringDeleteIntGauge0(plain);
    TFE_MonitoringDeleteIntGauge1(one);
    TFE_MonitoringDeleteIntGauge2(two);
    TF_DeleteStatus(status);
}

static void print_text(const char* what, TFE_MonitoringStringGaugeCell* cell) {
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_MonitoringStringGaugeCellValue(cell, buffer);
    printf("%s: %zu [%.*s]\n", what, buffer->length, (int)buffer->length, (const char*)buffer->data);
    TF_DeleteBuffer(buffer);
}

static void string_gauges(void) {
    status = TF_NewStatus();
    TFE_MonitoringStringGauge0* plain = TFE_MonitoringNewStringGauge0("/test/string0", status, "a gauge");
    print_status("gauge0", status);
    print_text("at first", TFE_MonitoringGetCellStringGauge0(plain));
    TFE_MonitoringStringGaugeCellSet(TFE_MonitoringGetCellStringGauge0(plain), "hello");
    print_text("set", TFE_MonitoringGetCellStringGauge0(plain));
    TFE_MonitoringStringGaugeCellSet(TFE_MonitoringGetCellStringGauge0(plain), "");
    print_text("emptied", TFE_MonitoringGetCellStringGauge0(plain));
    TFE_MonitoringStringGauge1* one = TFE_MonitoringNewStringGauge1("/test/string1", fresh(status), "d", "1");
    TFE_MonitoringStringGauge2* two = TFE_MonitoringNewStringGauge2("/test/string2", fresh(status), "d", "1", "2");
    TFE_MonitoringStringGauge3* three = TFE_MonitoringNewStringGauge3("/test/string3", fresh(status), "d", "1", "2", "3");
    TFE_MonitoringStringGauge4* four =
        TFE_MonitoringNewStringGauge4("/test/string4", fresh(status), "d", "1", "2", "3", "4");
    print_status("gauge4", status);
    TFE_MonitoringStringGaugeCellSet(TFE_MonitoringGetCellStringGauge1(one, "a"), "one");
    TFE_MonitoringStringGaugeCellSet(TFE_MonitoringGetCellStringGauge2(two, "a", "b"), "two");
    TFE_MonitoringStringGaugeCellSet(TFE_MonitoringGetCellStringGauge3(three, "a", "b", "c"), "three");
    TFE_MonitoringStringGaugeCellSet(TFE_MonitoringGetCellStringGauge4(four, "a", "b", "c", "d"), "four");
    print_text("one", TFE_MonitoringGetCellStringGauge1(one, "a"));
    print_text("two", TFE_MonitoringGetCellStringGauge2(two, "a", "b"));
    print_text("three", TFE_MonitoringGetCellStringGauge3(three, "a", "b", "c"));
    print_text("four", TFE_MonitoringGetCellStringGauge4(four, "a", "b", "c", "d"));
    print_text("four, other labels", TFE_MonitoringGetCellStringGauge4(four, "a", "b", "d", "c"));
    TFE_MonitoringDeleteStringGauge0(plain);
    TFE_MonitoringDeleteStringGauge1(one);
    TFE_MonitoringDeleteStringGauge2(two);
    TFE_MonitoringDeleteStringGauge3(three);
    TFE_MonitoringDeleteStringGauge4(four);
    TF_DeleteStatus(status);
}

static void bool_gauges(void) {
    status = TF_NewStatus();
    TFE_MonitoringBoolGauge0* plain = TFE_MonitoringNewBoolGauge0("/test/bool0", status, "a gauge");
    TFE_MonitoringBoolGauge1* one = TFE_MonitoringNewBoolGauge1("/test/bool1", fresh(status), "d", "x");
    TFE_MonitoringBoolGauge2* two = TFE_MonitoringNewBoolGauge2("/test/bool2", fresh(status), "d", "x", "y");
    print_status("gauge2", status);
    printf("%d", TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringGetCellBoolGauge0(plain)));
    TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringGetCellBoolGauge0(plain), true);
    TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringGetCellBoolGauge1(one, "a"), true);
    TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringGetCellBoolGauge2(two, "a", "b"), true);
    TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringGetCellBoolGauge2(two, "a", "b"), false);
    printf(" %d %d %d %d\n", TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringGetCellBoolGauge0(plain)),
           TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringGetCellBoolGauge1(one, "a")),
           TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringGetCellBoolGauge1(one, "b")),
           TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringGetCellBoolGauge2(two, "a", "b")));
    TFE_MonitoringDeleteBoolGauge0(plain);
    TFE_MonitoringDeleteBoolGauge1(one);
    TFE_MonitoringDeleteBoolGauge2(two);
    TF_DeleteStatus(status);
}

static void print_sampler(const char* what, TFE_MonitoringSamplerCell* cell) {
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_MonitoringSamplerCellValue(cell, buffer);
    printf("%s: ", what);
    print_bytes(buffer->data, buffer->length);
    printf("\n");
    TF_DeleteBuffer(buffer);
}

static void samplers(void) {
    status = TF_NewStatus();
    TFE_MonitoringBuckets* buckets = TFE_MonitoringNewExponentialBuckets(1, 2, 4);
    TFE_MonitoringSampler0* plain = TFE_MonitoringNewSampler0("/test/sampler0", buckets, status, "a sampler");
    print_status("sampler0", status);
    TFE_MonitoringSamplerCell* cell = TFE_MonitoringGetCellSampler0(plain);
    print_sampler("at first", cell);
    const double values[] = {0.5, 1, 1.5, 3, 8, 1e9, -4, 2};
    for (int i = 0; i < N_ELEMENTS(values); ++i) {
        TFE_MonitoringSamplerCellAdd(cell, values[i]);
        print_sampler("added", cell);
    }
    TFE_MonitoringSampler1* one = TFE_MonitoringNewSampler1("/test/sampler1", buckets, fresh(status), "d", "x");
    TFE_MonitoringSampler2* two = TFE_MonitoringNewSampler2("/test/sampler2", buckets, fresh(status), "d", "x", "y");
    print_status("sampler2", status);
    printf("again %d", TFE_MonitoringNewSampler1("/test/sampler2", buckets, fresh(status), "d", "x") != NULL);
    print_status("", status);
    TFE_MonitoringDeleteBuckets(buckets);
    TFE_MonitoringSamplerCellAdd(TFE_MonitoringGetCellSampler1(one, "a"), 3);
    TFE_MonitoringSamplerCellAdd(TFE_MonitoringGetCellSampler2(two, "a", "b"), 4);
    print_sampler("one", TFE_MonitoringGetCellSampler1(one, "a"));
    print_sampler("two", TFE_MonitoringGetCellSampler2(two, "a", "b"));
    buckets = TFE_MonitoringNewExponentialBuckets(0.25, 1.5, 6);
    TFE_MonitoringSampler0* other = TFE_MonitoringNewSampler0("/test/sampler3", buckets, fresh(status), "d");
    TFE_MonitoringSamplerCellAdd(TFE_MonitoringGetCellSampler0(other), 0.3);
    print_sampler("other buckets", TFE_MonitoringGetCellSampler0(other));
    TFE_MonitoringDeleteBuckets(buckets);
    TFE_MonitoringDeleteSampler0(plain);
    TFE_MonitoringDeleteSampler0(other);
    TFE_MonitoringDeleteSampler1(one);
    TFE_MonitoringDeleteSampler2(two);
    TF_DeleteStatus(status);
}

enum { TURNS = 20000 };

static TFE_MonitoringCounter1* shared_counter;
static TFE_MonitoringSampler1* shared_sampler;
static TFE_MonitoringStringGauge1* shared_gauge;

static void* count(void* label) {
    for (int i = 0; i < TURNS; ++i) {
        TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringGetCellCounter1(shared_counter, i % 2 ? "both" : label), 1);
        TFE_MonitoringSamplerCellAdd(TFE_MonitoringGetCellSampler1(shared_sampler, "both"), 1);
        TFE_MonitoringStringGaugeCellSet(TFE_MonitoringGetCellStringGauge1(shared_gauge, "both"), label);
        if (i % 100 == 0) {
            TF_Buffer* buffer = TF_NewBuffer();
            TFE_MonitoringStringGaugeCellValue(TFE_MonitoringGetCellStringGauge1(shared_gauge, "both"), buffer);
            if (buffer->length != 5) printf("torn: %zu\n", buffer->length);
            TF_DeleteBuffer(buffer);
        }
    }
    return NULL;
}

static void threads(void) {
    status = TF_NewStatus();
    TFE_MonitoringBuckets* buckets = TFE_MonitoringNewExponentialBuckets(1, 2, 2);
    shared_counter = TFE_MonitoringNewCounter1("/test/shared_counter", status, "d", "x");
    shared_sampler = TFE_MonitoringNewSampler1("/test/shared_sampler", buckets, fresh(status), "d", "x");
    shared_gauge = TFE_MonitoringNewStringGauge1("/test/shared_gauge", fresh(status), "d", "x");
    pthread_t first, second;
    pthread_create(&first, NULL, count, (void*)"alpha");
    pthread_create(&second, NULL, count, (void*)"gamma");
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    const char* labels[] = {"alpha", "gamma", "both"};
    for (int i = 0; i < 3; ++i) {
        printf("%s %lld\n", labels[i],
               (long long)TFE_MonitoringCounterCellValue(TFE_MonitoringGetCellCounter1(shared_counter, labels[i])));
    }
    print_sampler("both", TFE_MonitoringGetCellSampler1(shared_sampler, "both"));
    TFE_MonitoringDeleteBuckets(buckets);
    TFE_MonitoringDeleteCounter1(shared_counter);
    TFE_MonitoringDeleteSampler1(shared_sampler);
    TFE_MonitoringDeleteStringGauge1(shared_gauge);
    TF_DeleteStatus(status);
}

static const Case CASES[] = {
    {"counters", counters},       {"int_gauges", int_gauges}, {"string_gauges", string_gauges},
    {"bool_gauges", bool_gauges}, {"samplers", samplers},     {"threads", threads},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
