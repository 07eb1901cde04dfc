/* Wrong declarations of functions of the library, which clang only warns about. */
int memcmp(long, long, char);
int strcmp(char *, char *);
short strlen(char *);
void fread(void *, long, long, void *);
int memset(int *, long, long);
char buffer[32];
int use(void *file) {
  fread(buffer, 1, 32, file);
  memset((int *)buffer, 0, 4);
  return memcmp((long)buffer, 3, 4) + strcmp(buffer, buffer + 8) + strlen(buffer);
}
float (*strlen_pointer)(char *) = (float (*)(char *))strlen;
float through_pointer(void) { return strlen_pointer(buffer); }
int wrongly(void) { return ((int (*)(int, int, int))strlen)(1, 2, 3); }
