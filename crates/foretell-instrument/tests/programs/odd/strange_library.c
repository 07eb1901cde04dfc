/* Declares and defines functions of the library in its own way. */
typedef unsigned int narrow;
char shared[16];
narrow strlen(const char *s) { narrow n = 0; while (s[n]) n++; return n; }
char *strcpy(char *to, const char *from) { char *p = to; while ((*p++ = *from++)) ; return to; }
int strcmp(const char *a, const char *b);
void *memcpy(void *to, const void *from, unsigned long n) {
  char *t = to; const char *f = from;
  while (n--) *t++ = *f++;
  return to;
}
void *malloc(unsigned long);
void abort(void);
int memcmp();
int use(char *p) {
  strcpy(shared, p);
  if (strcmp(shared, p)) abort();
  if (memcmp(shared, p, (char)3)) return 2;
  return strlen(shared);
}
int main(int, char **);
int main(int count, char **words) { return count > 1 ? main(1, words + 1) : use(words[0]); }
