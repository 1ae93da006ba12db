/* TF_TString: the string element of tensors, with inline functions.
 *
 * A string is 24 bytes in one of four forms, which the low two bits of its first byte tell. Small strings hold up to 22
 * bytes in place; large ones own memory from malloc; views show bytes that someone else owns, for as long as those live
 * (or hold a share in an owner); an offset is a distance from the string itself to its bytes. Small and large strings end
 * with a zero byte that their size does not count. All zero bytes are an empty string.
 *
 * A string is initialised by TF_TString_Init before anything else is done with it, and freed by TF_TString_Dealloc. One
 * thread at a time may change it. The same operations through calls: tensorflow/c/tf_tstring.h. */
#ifndef TENSORFLOW_TSL_PLATFORM_CTSTRING_H_
#define TENSORFLOW_TSL_PLATFORM_CTSTRING_H_

#include "tsl/platform/ctstring_internal.h"

/* Makes it the empty string, whatever was there. */
static inline void TF_TString_Init(TF_TString *str) { memset(str, 0, sizeof *str); }

/* The form. */
static inline TF_TString_Type TF_TString_GetType(const TF_TString *str) {
  return (TF_TString_Type)(str->u.raw.raw[0] & TF_TSTR_TYPE_MASK);
}

/* The number of bytes. */
static inline size_t TF_TString_GetSize(const TF_TString *str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL: return str->u.smll.size >> 2;
    case TF_TSTR_OFFSET: return str->u.offset.size >> 2;
    default: return str->u.large.size >> 2;
  }
}

/* The number of bytes that fit without new memory; 0 for views and offsets. */
static inline size_t TF_TString_GetCapacity(const TF_TString *str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL: return TF_TString_SmallCapacity;
    case TF_TSTR_LARGE: return str->u.large.cap;
    default: return 0;
  }
}

/* The bytes. */
static inline const char *TF_TString_GetDataPointer(const TF_TString *str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL: return str->u.smll.str;
    case TF_TSTR_LARGE: return str->u.large.ptr;
    case TF_TSTR_OFFSET: return (const char *)str + str->u.offset.offset;
    default: return str->u.view.ptr;
  }
}

/* Frees what the string owns, and makes it empty if it owned something. */
static inline void TF_TString_Dealloc(TF_TString *str) {
  TF_TString_Type type = TF_TString_GetType(str);
  if (type == TF_TSTR_LARGE && str->u.large.ptr) {
    free(str->u.large.ptr);
    TF_TString_Init(str);
  } else if (type == TF_TSTR_VIEW && str->u.view.owner_ref) {
    (void)str->u.view.owner_ref->unref(str->u.view.owner_ref);
    TF_TString_Init(str);
  }
}

/* Makes it an own string of `size` bytes with room for `capacity`, keeping the first bytes. Returns its bytes, or NULL,
 * with the string unchanged, when memory is out. */
static inline char *TF_TString_Rebuild(TF_TString *str, size_t size, size_t capacity) {
  TF_TString_Type type = TF_TString_GetType(str);
  size_t old_size = TF_TString_GetSize(str);
  size_t kept = old_size < size ? old_size : size;
  const char *old = TF_TString_GetDataPointer(str);
  TF_TString built;
  TF_TString_Init(&built);
  if (capacity <= TF_TString_SmallCapacity) {
    if (kept) memcpy(built.u.smll.str, old, kept);
    built.u.smll.size = (uint8_t)(size << 2 | TF_TSTR_SMALL);
    built.u.smll.str[size] = '\0';
    if (type != TF_TSTR_SMALL) TF_TString_Dealloc(str);
    *str = built;
    return str->u.smll.str;
  }
  size_t block = TF_TString_BlockSize(capacity);
  char *memory;
  if (type == TF_TSTR_LARGE) {
    memory = (char *)realloc(str->u.large.ptr, block);
    if (!memory) return NULL;
  } else {
    memory = (char *)malloc(block);
    if (!memory) return NULL;
    if (kept) memcpy(memory, old, kept);
    TF_TString_Dealloc(str);
  }
  memory[size] = '\0';
  built.u.large.size = size << 2 | TF_TSTR_LARGE;
  built.u.large.cap = block - 1;
  built.u.large.ptr = memory;
  *str = built;
  return memory;
}

/* Makes it an own string of `new_size` bytes, the new ones of any value. Returns its bytes; NULL when memory is out. */
static inline char *TF_TString_ResizeUninitialized(TF_TString *str, size_t new_size) {
  if (TF_TString_GetType(str) == TF_TSTR_LARGE && new_size > TF_TString_SmallCapacity &&
      new_size <= str->u.large.cap && new_size >= str->u.large.cap / 2) {
    str->u.large.size = new_size << 2 | TF_TSTR_LARGE;
    str->u.large.ptr[new_size] = '\0';
    return str->u.large.ptr;
  }
  return TF_TString_Rebuild(str, new_size, new_size);
}

/* Makes it an own string of `new_size` bytes, the new ones `c`. Returns its bytes; NULL when memory is out. */
static inline char *TF_TString_Resize(TF_TString *str, size_t new_size, char c) {
  size_t old_size = TF_TString_GetSize(str);
  char *bytes = TF_TString_ResizeUninitialized(str, new_size);
  if (bytes && new_size > old_size) memset(bytes + old_size, c, new_size - old_size);
  return bytes;
}

/* The bytes of an own string, for writing; views and offsets are copied first. */
static inline char *TF_TString_GetMutableDataPointer(TF_TString *str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL: return str->u.smll.str;
    case TF_TSTR_LARGE: return str->u.large.ptr;
    default: return TF_TString_ResizeUninitialized(str, TF_TString_GetSize(str));
  }
}

/* Makes it an own string with room for at least `new_cap` bytes. Size and bytes stay. */
static inline void TF_TString_Reserve(TF_TString *str, size_t new_cap) {
  TF_TString_Type type = TF_TString_GetType(str);
  size_t size = TF_TString_GetSize(str);
  int is_own = type == TF_TSTR_SMALL || type == TF_TSTR_LARGE;
  if (is_own && new_cap <= TF_TString_GetCapacity(str)) return;
  TF_TString_Rebuild(str, size, new_cap > size ? new_cap : size);
}

/* As TF_TString_Reserve, but new memory is at least twice the old, so that appending byte by byte stays cheap. */
static inline void TF_TString_ReserveAmortized(TF_TString *str, size_t new_cap) {
  size_t capacity = TF_TString_GetCapacity(str);
  if (new_cap > capacity) TF_TString_Reserve(str, new_cap > 2 * capacity ? new_cap : 2 * capacity);
}

/* Makes it a view of bytes with a share in their owner; without an owner the bytes must outlive it. */
static inline void TF_TString_AssignViewWithOwner(TF_TString *dst, const char *src, size_t size,
                                                  TStringOwnerCApi *owner_ref) {
  if (owner_ref) owner_ref->ref(owner_ref);
  TF_TString_Dealloc(dst);
  dst->u.view.size = size << 2 | TF_TSTR_VIEW;
  dst->u.view.ptr = src;
  dst->u.view.owner_ref = owner_ref;
}

/* Makes it a view of bytes that outlive it. */
static inline void TF_TString_AssignView(TF_TString *dst, const char *src, size_t size) {
  TF_TString_AssignViewWithOwner(dst, src, size, NULL);
}

/* Appends bytes that are not of `dst` itself. */
static inline void TF_TString_AppendN(TF_TString *dst, const char *src, size_t size) {
  if (!size) return;
  size_t old_size = TF_TString_GetSize(dst);
  TF_TString_ReserveAmortized(dst, old_size + size);
  char *bytes = TF_TString_ResizeUninitialized(dst, old_size + size);
  if (bytes) memcpy(bytes + old_size, src, size);
}

/* Appends a string that is not `dst` itself. */
static inline void TF_TString_Append(TF_TString *dst, const TF_TString *src) {
  TF_TString_AppendN(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
}

/* Makes it an own string with a copy of bytes that are not of `dst` itself. */
static inline void TF_TString_Copy(TF_TString *dst, const char *src, size_t size) {
  char *bytes = TF_TString_ResizeUninitialized(dst, size);
  if (bytes && size) memcpy(bytes, src, size);
}

/* Makes `dst` what `src` is: large strings are copied, views and offsets become views. */
static inline void TF_TString_Assign(TF_TString *dst, const TF_TString *src) {
  if (dst == src) return;
  switch (TF_TString_GetType(src)) {
    case TF_TSTR_SMALL:
      TF_TString_Dealloc(dst);
      *dst = *src;
      break;
    case TF_TSTR_LARGE:
      TF_TString_Copy(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
      break;
    case TF_TSTR_OFFSET:
      TF_TString_AssignView(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
      break;
    default:
      TF_TString_AssignViewWithOwner(dst, src->u.view.ptr, TF_TString_GetSize(src), src->u.view.owner_ref);
  }
}

/* Gives what `src` is to `dst`. */
static inline void TF_TString_Move(TF_TString *dst, TF_TString *src) {
  if (dst == src) return;
  TF_TString_Dealloc(dst);
  if (TF_TString_GetType(src) == TF_TSTR_OFFSET) {
    TF_TString_AssignView(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
    return;
  }
  *dst = *src;
  if (TF_TString_GetType(src) != TF_TSTR_SMALL) TF_TString_Init(src);
}

#endif /* TENSORFLOW_TSL_PLATFORM_CTSTRING_H_ */
