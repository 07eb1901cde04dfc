/* flags_word_bad.c by hand: the same shared variables and steps. */
int word;
byte ended;
active proctype one() {
  int t;
  t = word;
  word = t | 1;
  ended++
}
active proctype two() {
  int t;
  t = word;
  word = t | (1 << 30);
  ended++
}
active proctype end() {
  ended == 2;
  assert(word == (1 | (1 << 30)))
}
