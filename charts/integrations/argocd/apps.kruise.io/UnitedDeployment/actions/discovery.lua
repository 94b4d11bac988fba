return listActions(obj, countPods(obj, describeStrategy(obj)), {
  approve = whyNotApprove,
  promote = whyNotPromote,
  restart = whyNotRestart,
})
