return judgeBundle(obj)
