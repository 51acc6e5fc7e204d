"""The decisions, all of them pure: who gets how many slots and where (`plan`), who trains with whom (`membership`)."""
