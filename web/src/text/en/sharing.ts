/** With whom something is shared. */
export const sharing = {
  title: "Shared with",
  everybody: "Everybody who can log on",
  people: "People",
  peopleHint: "Names of users; Enter adds one.",
  nobody: "Nobody but its owner",
  save: "Save",
  saved: "Saved",
  stale: (names: string) =>
    `Somebody else has changed this meanwhile. It is shared with: ${names}. Save again to replace that by what is chosen here.`,
};
