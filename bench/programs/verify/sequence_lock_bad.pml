/* sequence_lock_bad.c by hand: the same shared variables and steps. */
int sequence, left, right;
byte ended;
active proctype one() {
  left = 1;
  right = 1;
  sequence++;
  ended++
}
active proctype two() {
  int before, l, r;
  before = sequence;
  if
  :: before & 1 -> skip
  :: else -> l = left; r = right;
     if :: sequence == before -> assert(l == r) :: else fi
  fi;
  ended++
}
active proctype end() {
  ended == 2;
  skip
}
