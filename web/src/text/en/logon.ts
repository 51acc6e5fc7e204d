export const logon = {
  title: "Log on",
  name: "Name",
  password: "Password",
  submit: "Log on",
  link: "On the server's machine, `pliant console` opens this page logged on.",
  wait: (seconds: number) => `Too many attempts. Try again in ${seconds} s.`,
  redeeming: "Logging on by a link…",
  badLink: "This link was used already, or is older than a minute. Make another one with `pliant console`.",
  ended: "Your session has ended. Log on to go on where you were.",
};
