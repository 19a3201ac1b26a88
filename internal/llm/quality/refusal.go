package quality

import "strings"

// refusals are the ways in which models begin to say no, in lower case.
var refusals = []string{
	// English
	"i can't help with", "i cannot help with", "i can't assist", "i cannot assist", "i'm sorry, but i can't", "i’m sorry, but i can’t", "i'm sorry, but i cannot",
	"i am sorry, but i can", "sorry, but i can't", "sorry, i can't", "i'm unable to help", "i am unable to", "i'm not able to help", "i can't provide", "i cannot provide",
	"i can't comply", "i cannot comply", "i won't be able to", "i must decline", "as an ai language model, i cannot", "i can’t help with", "i can’t assist", "i can’t provide",
	"i cannot fulfill", "i can't fulfill",
	// Chinese
	"抱歉，我无法", "抱歉，我不能", "很抱歉，我无法", "很抱歉，我不能", "对不起，我无法", "对不起，我不能", "我无法协助", "我不能协助", "我无法提供", "我不能提供", "我无法满足", "作为一个人工智能，我不能",
	"作为ai助手，我无法", "非常抱歉，我无法", "非常抱歉，我不能", "抱歉,我无法", "抱歉,我不能",
	// Spanish, Portuguese, French, German, Japanese, Korean, Russian
	"lo siento, pero no puedo", "lo siento, no puedo", "desculpe, mas não posso", "desculpe, não posso", "je suis désolé, mais je ne peux pas", "désolé, je ne peux pas",
	"es tut mir leid, aber ich kann", "tut mir leid, aber", "申し訳ありませんが、", "申し訳ございませんが、", "죄송하지만", "죄송합니다만", "извините, но я не могу", "к сожалению, я не могу",
}

// refusalWithin is how near the beginning a refusal stands, in bytes.
const refusalWithin = 240

// refuses tells an answer that begins with a refusal.
func refuses(text string) bool {
	s := strings.TrimSpace(text)
	if len(s) > refusalWithin {
		s = s[:refusalWithin]
	}
	s = strings.ToLower(s)
	for _, r := range refusals {
		if strings.Contains(s[:min(len(s), refusalWithin/3+len(r))], r) {
			return true
		}
	}
	return false
}
