/* The layout of TF_TString; programs use the functions of tsl/platform/ctstring.h. Little-endian machines only. */
#ifndef TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_
#define TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "TF_TString is laid out for little-endian machines"
#endif

/* The form of a string. */
typedef enum TF_TString_Type {
  TF_TSTR_SMALL = 0x00,
  TF_TSTR_LARGE = 0x01,
  TF_TSTR_OFFSET = 0x02,
  TF_TSTR_VIEW = 0x03,
  TF_TSTR_TYPE_MASK = 0x03
} TF_TString_Type;

struct TStringOwnerCApi;
typedef void (*tstring_owner_ref_t)(struct TStringOwnerCApi *self);
typedef bool (*tstring_owner_unref_t)(struct TStringOwnerCApi *self);

/* Who owns the bytes that a view shows: each view holds one share. */
typedef struct TStringOwnerCApi {
  /* Takes a share. */
  tstring_owner_ref_t ref;
  /* Gives a share back; true for the last one. */
  tstring_owner_unref_t unref;
  /* The owner's own. */
  void *obj;
} TStringOwnerCApi;

/* Sizes are shifted left by two; the low two bits are the form. */
typedef struct TF_TString_Large {
  size_t size;
  size_t cap;
  char *ptr;
} TF_TString_Large;

typedef struct TF_TString_Offset {
  uint32_t size;
  /* Bytes from the string itself to its bytes. */
  uint32_t offset;
  uint32_t count;
} TF_TString_Offset;

typedef struct TF_TString_View {
  size_t size;
  const char *ptr;
  TStringOwnerCApi *owner_ref;
} TF_TString_View;

typedef struct TF_TString_Raw {
  uint8_t raw[24];
} TF_TString_Raw;

enum { TF_TString_SmallCapacity = sizeof(TF_TString_Raw) - 2 };

typedef struct TF_TString_Small {
  uint8_t size;
  char str[TF_TString_SmallCapacity + 1];
} TF_TString_Small;

typedef struct TF_TString {
  union {
    TF_TString_Small smll;
    TF_TString_Large large;
    TF_TString_Offset offset;
    TF_TString_View view;
    TF_TString_Raw raw;
  } u;
} TF_TString;

/* Bytes of memory for a large string of a capacity, with its zero byte. */
static inline size_t TF_TString_BlockSize(size_t capacity) { return (capacity + 1 + 15) & ~(size_t)15; }

#endif /* TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_ */
