/* try_both_bad.c by hand: the same shared variables and steps. */
int meals;
bit f, g;
inline lock(m) { atomic { m == 0 -> m = 1 } }
inline unlock(m) { m = 0 }
byte ended;
active proctype one() {
  int t;
  lock(f);
  atomic { if :: g == 0 -> g = 1; t = 1 :: else -> t = 0 fi };
  if :: t -> meals++; unlock(g) :: else fi;
  unlock(f);
  ended++
}
active proctype two() {
  int t;
  lock(g);
  atomic { if :: f == 0 -> f = 1; t = 1 :: else -> t = 0 fi };
  if :: t -> meals++; unlock(f) :: else fi;
  unlock(g);
  ended++
}
active proctype end() {
  ended == 2;
  assert(meals >= 1 && meals <= 2)
}
