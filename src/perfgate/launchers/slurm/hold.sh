
# Holds the nodes; perfgate's programs are steps of this job. It ends when perfgate has gone without
# cancelling it: the file below changes for as long as perfgate lives.
beat={beat}
missed=0
seen=
while [ $missed -lt {signs} ]; do
  sleep {every}
  now=$(cat "$beat" 2>/dev/null)
  if [ "$now" = "$seen" ]; then
    missed=$((missed + 1))
  else
    missed=0
    seen=$now
  fi
done
echo "no sign of life from perfgate: its nodes are given back"
