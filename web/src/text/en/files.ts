/** Choosing files of one's own machine. */
export const files = {
  dropFolder: "Drop a folder or files here",
  folder: "Choose a folder",
  file: "Choose files",
  reading: "Reading…",
  other: "Choose others",
  chosen: (count: string, size: string) => `${count}, ${size}`,
  leftOut: (names: string) => `Not sent: ${names}`,
  andMore: (count: number) => `and ${count} more`,
  refused: (names: string) => `These names lead out of the folder and are not sent: ${names}`,
  unreadable: "The browser could not read this. Choose it again, or pack it into an archive.",
};
