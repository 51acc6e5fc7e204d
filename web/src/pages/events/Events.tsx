import { Page } from "../../components/Page";
import { text } from "../../text";

export default function Events() {
  return <Page title={text.nav.events}>…</Page>;
}
