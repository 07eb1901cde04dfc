/* strategy_bad.c by hand: the same shared variables and steps. */
int count;
byte ended;
active proctype one() {
  int c;
  count++;
  c = count;
  count = c + 1;
  ended++
}
active proctype two() {
  int c;
  count++;
  c = count;
  count = c + 1;
  ended++
}
active proctype end() {
  ended == 2;
  assert(count == 4)
}
