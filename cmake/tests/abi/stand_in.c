/* Stands in for a release of the library when programs are linked; nothing here ever runs. */
#if defined(FUNCTIONS_ALL) || defined(FUNCTIONS_VERSION)
const char* TF_Version(void) { return "stand-in"; }
#endif
#if defined(FUNCTIONS_ALL) || defined(FUNCTIONS_STATUS)
void* TF_NewStatus(void) { return 0; }
void TF_DeleteStatus(void* status) { (void)status; }
int TF_GetCode(const void* status) { return status == 0; }
const char* TF_Message(const void* status) { return status ? "stand-in" : ""; }
void TF_SetStatus(void* status, int code, const char* message) { (void)status, (void)code, (void)message; }
#endif
